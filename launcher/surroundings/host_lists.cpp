#include "base/text.hpp"
#include "launcher/surroundings/family.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <algorithm>
#include <utility>

/// Lists of hosts in variables named X_HOSTS, in which this one can be found: of SageMaker
/// (SM_HOSTS and SM_CURRENT_HOST, "Environment variables of the training toolkit"), of Volcano's
/// svc plug-in (VC_<TASK>_HOSTS), and of whoever else writes them so.
namespace muster::launcher {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kSuffix = "_HOSTS";
constexpr std::size_t kMostHosts = 65536;

/// `a,b` or `["a", "b"]`.
std::optional<Names> hosts_in(std::string_view text) {
  text = trimmed(text);
  const bool is_json = text.starts_with('[') && text.ends_with(']');
  if (is_json) text = text.substr(1, text.size() - 2);
  Names names;
  for (auto name : split(text, ',')) {
    name = trimmed(name);
    if (is_json) {
      if (name.size() < 2 || !name.starts_with('"') || !name.ends_with('"')) return std::nullopt;
      name = name.substr(1, name.size() - 2);
    }
    if (name.empty() || !is_host_text(name) || names.size() == kMostHosts) return std::nullopt;
    names.emplace_back(name);
  }
  return names;
}

struct Place {
  Told<Names> hosts;
  std::size_t own = 0;
  std::string own_origin;
};

Surroundings found_at(std::string name, const Place& place) {
  Surroundings found;
  found.name = std::move(name);
  found.whole = place.hosts.origin;
  found.machines = static_cast<std::uint32_t>(place.hosts.value.size());
  found.launchers = {found.machines, place.hosts.origin};
  found.is_elsewhere = place.own > 0;
  found.node_rank = {static_cast<std::uint32_t>(place.own), place.own_origin};
  found.first_host = {place.hosts.value.front(), "the first of " + place.hosts.origin};
  found.job_id = found.first_host;
  return found;
}

/// X_HOSTS where X_CURRENT_HOST is one of them.
std::optional<Surroundings> by_current_host(Reader& reader) {
  for (const auto& [variable, value] : reader.environment()) {
    if (!variable.ends_with(kSuffix)) continue;
    const auto prefix = variable.substr(0, variable.size() - kSuffix.size());
    const auto current = reader.text(prefix + "_CURRENT_HOST");
    if (!current) continue;
    const auto hosts = hosts_in(value);
    if (!hosts) {
      reader.wrong(variable + ": " + in_quotes(value) +
                   " is no list of hosts such as a,b or [\"a\", \"b\"]");
      return Surroundings();
    }
    const auto own = std::ranges::find(*hosts, current->value) - hosts->begin();
    if (own == std::ssize(*hosts)) {
      reader.wrong(current->origin + ": " + in_quotes(current->value) + " is not in " + variable);
      return Surroundings();
    }
    auto found = found_at(prefix == "SM" ? "SageMaker" : variable,
                          {{*hosts, variable}, static_cast<std::size_t>(own), current->origin});
    found.slots = reader.number(prefix + "_NUM_GPUS");
    if (auto job = reader.text("TRAINING_JOB_NAME")) found.job_id = std::move(job);
    return found;
  }
  return std::nullopt;
}

/// All tasks' hosts, tasks in the order of their names; we are the one that HOSTNAME says.
std::optional<Surroundings> by_volcano(Reader& reader) {
  constexpr std::string_view kPrefix = "VC_";
  const auto own = reader.text("HOSTNAME");
  Place place;
  for (const auto& [variable, value] : reader.environment()) {
    if (!variable.starts_with(kPrefix) || !variable.ends_with(kSuffix)) continue;
    const auto hosts = hosts_in(value);
    if (!hosts || place.hosts.value.size() + hosts->size() > kMostHosts) {
      reader.wrong(variable + ": " + in_quotes(value) + " is no list of hosts such as a,b");
      return Surroundings();
    }
    auto& all = place.hosts;
    all.origin += (all.origin.empty() ? "" : " and ") + variable;
    all.value.insert(all.value.end(), hosts->begin(), hosts->end());
  }
  if (place.hosts.value.empty()) return std::nullopt;
  const auto& hosts = place.hosts.value;
  const auto at = std::ranges::find_if(hosts, [&own](const std::string& host) {
    return own && host.substr(0, host.find('.')) == own->value;
  });
  if (at == hosts.end()) return std::nullopt;
  place.own = static_cast<std::size_t>(at - hosts.begin());
  place.own_origin = own->origin;
  return found_at("Volcano", place);
}

}  // namespace

std::optional<Surroundings> host_of_list(Reader& reader) {
  if (auto found = by_current_host(reader)) return found;
  return by_volcano(reader);
}

}  // namespace muster::launcher
