#pragma once

// Test-only builds plant a fault in the sources of the wire, to show that the fuzz target finds it:
// 1 lets a frame exceed its limit by one byte. The programs are built with none.
#ifndef MUSTER_PLANTED_FAULT
#define MUSTER_PLANTED_FAULT 0
#endif
