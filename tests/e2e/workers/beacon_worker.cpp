// A worker that uses the beacon by the public header: tells what its arguments say and exits.
//
//   beacon_worker STEP PHASE CODE

#include <cstdlib>
#include <muster/beacon.hpp>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  muster::Beacon beacon;
  if (!beacon.is_there()) return 1;
  beacon.phase(argv[2]);
  beacon.step(std::strtoull(argv[1], nullptr, 10) - 1);
  beacon.step();
  return std::atoi(argv[3]);
}
