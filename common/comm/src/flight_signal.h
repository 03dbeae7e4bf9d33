#pragma once

namespace tandem::comm {

/// Has SIGUSR1 make a descriptor readable, besides what it did before: a
/// handler that was there is called too, but the default action, the process's
/// end, is not taken. While it lives; one at a time.
///
/// A handler that was put over this one stays, and may go on calling it.
class FlightSignal {
 public:
  FlightSignal();
  ~FlightSignal();
  FlightSignal(const FlightSignal&) = delete;
  FlightSignal& operator=(const FlightSignal&) = delete;

  /// An eventfd that does not block; open as long as the process lives.
  static int descriptor();
};

} // namespace tandem::comm
