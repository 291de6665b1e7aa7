#pragma once

#include "base/error.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

/// Gives flags that nobody has given what the surroundings say (nodes, node rank, endpoint, id,
/// workers), and names in a notice what was taken from where, and what the flags contradict:
///
///   one launcher                          its number of workers at most: it meets nobody
///   --nnodes as many as launchers, or     all of it
///   not given
///   --nnodes allows more                  all but node rank and launch tag: others may come
///   --nnodes allows fewer                 all but the node rank: the others are spares
///   --nnodes needs more                   that at most; an error unless an endpoint is given
///   --nnodes 1                            its number of workers at most
///
/// In an allocation of several machines on which nobody has started the others, and where no flag
/// says how they come, it sets `options.relaunch` instead. Fails where the launchers could never
/// meet.
[[nodiscard]] Result<void> settle_surroundings(const Surroundings& found,
                                               const Environment& environment, GivenFlags& flags,
                                               Options& options);

/// Once all flags are applied: warns where the workers have fewer processors than they could have.
void warn_of_processors(Options& options);

/// RANK, WORLD_SIZE and the like are another launcher's, and never read as workers: says so, and
/// whose they are.
void notice_inherited(const Environment& environment, Options& options);

}  // namespace muster::launcher
