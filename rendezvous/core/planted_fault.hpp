#pragma once

// Test-only builds plant one fault in the store's sources, to show that the property tests and the
// fuzz target find it: 1 wakes only the first of those who wait for a key, 2 writes a sum with a
// wrong sign, 3 forgets to cancel a wait, 4 (in the decoder) lets a length exceed its limit by one.
// The programs are built with none.
#ifndef MUSTER_PLANTED_FAULT
#define MUSTER_PLANTED_FAULT 0
#endif
