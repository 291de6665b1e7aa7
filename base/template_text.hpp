#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The text with its `$` read as Python's string templates read them: `$name` and `${name}` become
/// what `value_of` says of them, `$$` becomes `$`; any other `$`, and a name of which it says
/// nothing, stays.
[[nodiscard]] std::string substituted(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value_of);

}  // namespace muster
