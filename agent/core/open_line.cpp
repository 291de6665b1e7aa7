#include "agent/core/open_line.hpp"

namespace muster::agent {

void OpenLine::add(std::string& out, const void* owner, std::string_view prefix, const Line& line) {
  if (owner_ == nullptr && line.shown == 0 && line.has_ended) {  // Nearly all are like this.
    out.append(prefix).append(line.text) += '\n';
    return;
  }
  const bool goes_on = owner_ == owner;
  auto rest = line.text;
  if (!line.replaces) rest.remove_prefix(line.shown);
  if (!goes_on) {
    const bool was_ended_for_it = line.shown > 0 && rest.find_first_not_of('\r') == rest.npos;
    if (was_ended_for_it) return;
    end(out);
  }
  if (goes_on && line.replaces) out += '\r';
  if (!goes_on || line.replaces) out += prefix;
  out += rest;
  if (line.has_ended) out += '\n';
  owner_ = line.has_ended ? nullptr : owner;
}

void OpenLine::end(std::string& out) {
  if (owner_ != nullptr) out += '\n';
  owner_ = nullptr;
}

}  // namespace muster::agent
