#pragma once

#include <string>

namespace tandem::comm::launch {

/// The file that a shell would run for `name`: itself if it holds a slash, else
/// the first executable of that name in `search_path` ("dir:dir").
/// **Throws** `ProgramError`.
std::string find_program(
    const std::string& name,
    const std::string& search_path);

} // namespace tandem::comm::launch
