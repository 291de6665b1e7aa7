// netns-delay: forwards frames between two interfaces of the current network
// namespace, each way after a fixed delay (+ uniform jitter, order kept), with
// random loss. Stands in for sch_netem, which this kernel lacks.
//   netns-delay IF_A IF_B DELAY_MS [JITTER_MS] [LOSS_PERCENT]
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct frame {
  struct frame* next;
  uint64_t due;
  size_t len;
  char data[];
};
struct dir {
  int in, out;
  struct frame *head, **tail;
  uint64_t last;
};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}
static int open_if(const char* name) {
  int one = 1, big = 8 << 20,
      s = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (s < 0) {
    perror("socket");
    exit(1);
  }
  struct sockaddr_ll a = {.sll_family = AF_PACKET,
                          .sll_protocol = htons(ETH_P_ALL),
                          .sll_ifindex = (int)if_nametoindex(name)};
  struct packet_mreq m = {.mr_ifindex = a.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
  // vnet_hdr carries checksum/GSO state across, so 64 KB segments stay whole
  if (!a.sll_ifindex || setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) ||
      setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) ||
      setsockopt(s, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) ||
      bind(s, (struct sockaddr*)&a, sizeof a)) {
    perror(name);
    exit(1);
  }
  setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof big);
  setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof big);
  return s;
}
int main(int argc, char** argv) {
  if (argc < 4) return 2;
  double delay = atof(argv[3]) * 1e6, jitter = argc > 4 ? atof(argv[4]) * 1e6 : 0,
         loss = argc > 5 ? atof(argv[5]) / 100 : 0;
  int a = open_if(argv[1]), b = open_if(argv[2]);
  struct dir d[2] = {{a, b, 0, 0, 0}, {b, a, 0, 0, 0}};
  for (int i = 0; i < 2; i++) d[i].tail = &d[i].head;
  static char buf[1 << 17];
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    uint64_t t = now_ns(), next = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
      for (struct frame* f; (f = d[i].head) && f->due <= t;) {
        (void)!write(d[i].out, f->data, f->len);
        if (!(d[i].head = f->next)) d[i].tail = &d[i].head;
        free(f);
      }
      if (d[i].head && d[i].head->due < next) next = d[i].head->due;
    }
    struct pollfd p[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    struct timespec w = {0, 0};
    if (next != UINT64_MAX) {
      uint64_t n = next > t ? next - t : 0;
      w.tv_sec = n / 1000000000ull;
      w.tv_nsec = n % 1000000000ull;
    }
    if (ppoll(p, 2, next == UINT64_MAX ? NULL : &w, NULL) < 0 && errno != EINTR) {
      perror("ppoll");
      return 1;
    }
    for (int i = 0; i < 2; i++)
      for (int k = 0; k < 64; k++) {
        ssize_t n = read(d[i].in, buf, sizeof buf);
        if (n <= 0) break;
        if (loss > 0 && drand48() < loss) continue;
        struct frame* f = malloc(sizeof *f + n);
        if (!f) continue;
        f->next = NULL;
        f->len = n;
        memcpy(f->data, buf, n);
        f->due = now_ns() + (uint64_t)(delay + (jitter > 0 ? (2 * drand48() - 1) * jitter : 0));
        if (f->due < d[i].last) f->due = d[i].last;  // keep order within a direction
        d[i].last = f->due;
        *d[i].tail = f;
        d[i].tail = &f->next;
      }
  }
}
