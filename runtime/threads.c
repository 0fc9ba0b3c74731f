/* Counts the CPUs that this process may use: by the affinity mask, and by the CPU bandwidth limits
 * of its control group and all groups above it (v2: cpu.max; v1: cpu.cfs_quota_us over
 * cpu.cfs_period_us). */
#include "pool.h"
#include "text.h"

enum { kPath = 512 };

static int32_t affinity_cpus(void) {
  uint64_t mask[128] = {0}; /* room for 8192 CPUs */
  long bytes = syscall(SYS_sched_getaffinity, 0L, (long)sizeof mask, mask);
  int32_t count = 0;
  for (long i = 0; i * 8 < bytes; ++i)
    for (uint64_t m = mask[i]; m; m &= m - 1) ++count;
  return count > 0 ? count : 1;
}

/* Reads a decimal number at *s; -1 when there is none. */
static int64_t take_number(const char** s) {
  while (**s == ' ') ++*s;
  if (**s < '0' || **s > '9') return -1;
  int64_t v = 0;
  for (; **s >= '0' && **s <= '9'; ++*s)
    if (v < INT64_MAX / 16) v = v * 10 + (**s - '0');
  return v;
}

/* quota / period, rounded down, at least 1; `limit` where the quota is no smaller. It counts up:
 * there are few CPUs, and ARMv7 has no 64-bit division. */
static int32_t cut(int32_t limit, int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return limit;
  int32_t cpus = 1;
  while (cpus < limit && (int64_t)(cpus + 1) * period <= quota) ++cpus;
  return cpus;
}

static int64_t number_in(tw_text* path, const char* file) {
  char content[32];
  int32_t length = path->length;
  text_add(path, file);
  const char* at = content;
  int64_t v = tw_read_file(path->data, content, sizeof content) > 0 ? take_number(&at) : -1;
  path->data[path->length = length] = 0;
  return v;
}

static int32_t quota_v2(tw_text* path, int32_t limit) {
  char content[64];
  int32_t length = path->length;
  text_add(path, "/cpu.max");
  if (tw_read_file(path->data, content, sizeof content) > 0) {
    const char* at = content; /* "200000 100000" or "max 100000" */
    int64_t quota = take_number(&at);
    if (quota > 0) limit = cut(limit, quota, take_number(&at));
  }
  path->data[path->length = length] = 0;
  return limit;
}

/* Applies the limits of root/group and of every group above it. A container may see the group's
 * path but only its own root. Then the deeper files are missing, and the root's limit counts. */
static int32_t group_quota(const char* root, const char* group, int v2, int32_t limit) {
  char data[kPath];
  tw_text path = {data, 0, kPath};
  text_clear(&path);
  text_add(&path, root);
  int32_t floor = path.length;
  text_add(&path, group);
  for (;;) {
    while (path.length > floor && data[path.length - 1] == '/') data[--path.length] = 0;
    if (v2) limit = quota_v2(&path, limit);
    else
      limit = cut(limit, number_in(&path, "/cpu.cfs_quota_us"),
                  number_in(&path, "/cpu.cfs_period_us"));
    if (path.length == floor) return limit;
    while (path.length > floor && data[path.length - 1] != '/') data[--path.length] = 0;
  }
}

static int lists_cpu(const char* s) { /* reads "cpu,cpuacct" up to a ':' */
  while (*s && *s != ':') {
    if (s[0] == 'c' && s[1] == 'p' && s[2] == 'u' && (s[3] == ',' || s[3] == ':')) return 1;
    while (*s && *s != ',' && *s != ':') ++s;
    if (*s == ',') ++s;
  }
  return 0;
}

int32_t tw_usable_cpus(void) {
  char content[4096];
  int32_t limit = affinity_cpus();
  if (tw_read_file("/proc/self/cgroup", content, sizeof content) <= 0) return limit;
  for (char* line = content; *line;) { /* a line is "hierarchy:controllers:/group" */
    char* end = line;
    while (*end && *end != '\n') ++end;
    char* next = *end ? end + 1 : end;
    *end = 0;
    char* controllers = line;
    while (*controllers && *controllers != ':') ++controllers;
    if (*controllers) ++controllers;
    char* group = controllers;
    while (*group && *group != ':') ++group;
    if (*group) {
      if (*controllers == ':') limit = group_quota("/sys/fs/cgroup", group + 1, 1, limit);
      else if (lists_cpu(controllers))
        limit = group_quota("/sys/fs/cgroup/cpu", group + 1, 0, limit);
    }
    line = next;
  }
  return limit;
}
