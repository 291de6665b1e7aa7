#pragma once

// Test-only builds plant one fault in the client's sources, to show that the fuzz target finds it:
// 1 allocates what a reply claims before it comes, 2 reads a byte beyond a value if one is there, 3
// takes any byte for the end of a wait. Programs are built with none.
#ifndef MUSTER_PLANTED_FAULT
#define MUSTER_PLANTED_FAULT 0
#endif
