/* SPDX-License-Identifier: Apache-2.0
 * The C ABI of Windlass: all that Java, or any other language, sees of the native library.
 *
 * Manners
 *  - Every function that can fail returns a wl_code and fills `error` when it is not NULL. There is
 *    no thread-local last error, no callback, and no C++ exception crosses this boundary.
 *  - Structs start with `uint32_t struct_size = sizeof(struct)`.
 *  - The affinity and the scheduling of a thread that calls are left as they are, except where
 *    wl_thread_adopt or wl_group_config_t.adjust_threads allows more.
 *  - A wl_comm_t is one rank's handle. One thread at a time calls an operation on it; abort, close
 *    and the read-only queries are legal from any thread at any time.
 *  - `deadline_ns` is relative: 0 means the communicator's own, a negative value is refused.
 *  - Counts are elements unless a name says bytes. Strides are in elements and may be zero (on
 *    sources only) but never negative.
 *  - Numbers of enums are ABI: append only.
 *  - WL_ABI_VERSION is one more than that of the last commit whose library has not what this header
 *    declares, or has it otherwise: whatever adds, removes or changes a declaration raises it. Who
 *    loads a library takes it only if wl_abi_version() is the version they were written for, and
 *    need not look for each call.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define WL_API __attribute__((visibility("default")))
#define WL_ABI_VERSION 11u

typedef enum wl_code {
  WL_OK = 0,
  WL_INVALID_ARGUMENT = 1, /* nothing was sent */
  WL_MISMATCH = 2, /* ranks disagree; the message names both sides. A rank that does not wait for
                      the ranks that it disagrees with gets it from its next call, or from
                      wl_comm_close */
  WL_TIMEOUT = 3,          /* the message names who is behind */
  WL_PEER_LOST = 4,
  WL_ABORTED = 5, /* carries the reason */
  WL_VERIFICATION_FAILED = 6,
  WL_UNSUPPORTED = 7,
  WL_RESOURCE = 8, /* memory, disk, /dev/shm, permission */
  WL_CLOSED = 9,
  WL_DEVICE = 10,
  WL_INTERNAL = 11
} wl_code;

typedef enum wl_dtype {
  WL_BOOL = 0,
  WL_U8 = 1,
  WL_I8 = 2,
  WL_F8E5M2 = 3,
  WL_F8E4M3 = 4,
  WL_F8E8M0 = 5,
  WL_I16 = 6,
  WL_U16 = 7,
  WL_F16 = 8,
  WL_BF16 = 9,
  WL_I32 = 10,
  WL_U32 = 11,
  WL_F32 = 12,
  WL_F64 = 13,
  WL_I64 = 14,
  WL_U64 = 15,
  WL_C64 = 16, /* complex of two f32; moves, neither casts nor reduces */
  WL_F8E4M3FNUZ = 17, /* this and the next only move as well */
  WL_F8E5M2FNUZ = 18,
  WL_DTYPE_COUNT = 19
} wl_dtype;

typedef enum wl_reduce_op {
  WL_SUM = 0,
  WL_MAX = 1,
  WL_MIN = 2,
  WL_PRODUCT = 3,
  WL_AVG = 4,
  WL_REDUCE_OP_COUNT = 5
} wl_reduce_op;

typedef enum wl_algorithm {
  WL_AUTO = 0,
  WL_PUSH = 1,      /* all-to-all: every rank writes into its peers' outputs */
  WL_PULL = 2,      /* all-to-all: every rank reads from its peers' inputs */
  WL_STAGED = 3,    /* broadcast: the root stages, every other rank reads */
  WL_ONE_PHASE = 4, /* all-reduce: every rank folds every input */
  WL_TWO_PHASE = 5, /* all-reduce: every rank folds its share, and writes it to every rank */
  WL_RING = 6,      /* all-reduce: sums, then results, travel from rank to rank */
  WL_BIDIRECTIONAL_RING = 7 /* all-reduce: half of the elements travels each way */
} wl_algorithm;

/* The operation a rank is in; also the first part of every collective's digest. */
typedef enum wl_operation {
  WL_OP_NONE = 0,
  WL_OP_BARRIER = 1,
  WL_OP_ALL_TO_ALL = 2,
  WL_OP_BROADCAST = 3,
  WL_OP_WINDOW = 4, /* window creation */
  WL_OP_SPLIT = 5,
  WL_OP_REGISTER = 6, /* transfer creation */
  WL_OP_TRANSFER = 7,
  WL_OP_ALL_GATHER = 8,
  WL_OP_REDUCE_SCATTER = 9,
  WL_OP_ALL_REDUCE = 10,
  WL_OP_SCATTER = 11,
  WL_OP_GATHER = 12,
  WL_OP_REDUCE = 13,
  WL_OP_ALL_TO_ALL_V = 14,
  WL_OP_ALL_GATHER_V = 15,
  WL_OP_REDUCE_SCATTER_V = 16,
  WL_OP_PUT = 17,
  WL_OP_GET = 18,
  WL_OP_NOTIFY = 19,
  WL_OP_WAIT = 20,
  WL_OP_ACCUMULATE = 21,
  WL_OP_SUBSET = 22,
  WL_OP_FIRST_ONE_SIDED = WL_OP_PUT, /* to the last, and WL_OP_SHRINK: they take no sequence */
  WL_OP_LAST_ONE_SIDED = WL_OP_ACCUMULATE,
  /* Of wl_exchange and wl_exchange_v: what the step is one of. */
  WL_OP_LINK = 23,
  WL_OP_LINK_REGISTER = 24,
  WL_OP_LINK_MOVE = 25, /* a sender's send, a receiver's receive */
  WL_OP_LINK_CHECK = 26,
  WL_OP_CHECK_REPLICAS = 27,
  WL_OP_ALL_GATHER_COLUMNS = 28,
  WL_OP_SHRINK = 29,
  WL_OP_MEMORY_POOL = 30, /* memory pool creation */
  WL_OP_LAUNCH = 31,      /* of a library's kernel */
  WL_OP_EXPERT_DISPATCH = 32,
  WL_OP_EXPERT_COMBINE = 33,
  WL_OP_EXPERTS_OPEN = 34, /* to the next two: as WL_OP_LINK to WL_OP_CHECK_REPLICAS */
  WL_OP_MANIFEST_OPEN = 35,
  WL_OP_STORE_TO_HOST = 36, /* of a manifest's contexts */
  WL_OP_DEVICE_WINDOW = 37, /* creation of a window on devices */
  WL_OP_COUNT = 38
} wl_operation;

#define WL_MAX_RANKS 4096
#define WL_MAX_DIMS 16
#define WL_MAX_BLOCKS 64
#define WL_MAX_PHASES 1048576 /* of a transfer */
/* Of the device executor. */
#define WL_MAX_DEVICE_RANKS 64
#define WL_MAX_DEVICE_CORES 16
#define WL_ERROR_CULPRITS 64
#define WL_ERROR_MESSAGE 2048

typedef struct wl_error {
  uint32_t struct_size;
  int32_t code;          /* wl_code */
  int32_t operation;     /* wl_operation in which it was observed; of WL_PEER_LOST, in which the
                            observer was then, if it was in any */
  int32_t observer;      /* rank that saw it first, or -1 */
  uint32_t sequence;     /* operation sequence at which it was seen */
  int32_t culprit_count; /* ranks at fault; of more than WL_ERROR_CULPRITS, the first are listed */
  int32_t culprits[WL_ERROR_CULPRITS];
  char message[WL_ERROR_MESSAGE]; /* UTF-8, NUL-terminated: what happened, where, what to do */
} wl_error_t;

typedef struct wl_group wl_group_t;       /* ranks that meet, as one process holds them */
typedef struct wl_comm wl_comm_t;         /* one rank of a communicator */
typedef struct wl_window wl_window_t;     /* one rank's handle of a window */
typedef struct wl_memory_pool wl_memory_pool_t; /* one rank's handle of a memory pool */
typedef struct wl_transfer wl_transfer_t; /* one rank's handle of a bound plan */
typedef struct wl_report wl_report_t;     /* a group, as a process sees it that has none of it */

/* ---- library ---- */

WL_API uint32_t wl_abi_version(void);
WL_API const char* wl_version(void); /* "0.1.0" */
WL_API const char* wl_target(void);  /* "sim" */
WL_API const char* wl_code_name(int32_t code);
WL_API const char* wl_operation_name(int32_t operation);
/* Vector path in use: "avx512-fp16", "avx512-bf16", "avx512", "avx2" or "portable"; WINDLASS_ISA
 * names a lower. */
WL_API const char* wl_isa_path(void);
/* Cores this process may use: the smaller of affinity and cgroup quota, at least 1. */
WL_API int32_t wl_allowed_cores(void);
/* Says that the calling thread was made for operations: one that waits may move it among the cores
 * that its affinity mask allows, by a mask of one core that it takes back at once, and may ask for
 * short time slices, which a later one gives back. place: -1, or it is moved so now, to the core of
 * that number, modulo how many there are, of those that the mask allows; and where stays is not 0
 * the mask is that core from then on, which threads that it makes inherit, but for those that the
 * library makes in a call. Returns 1 if it was said before, and does nothing then; else 0. */
WL_API int32_t wl_thread_adopt(int32_t place, int32_t stays);
/* CLOCK_MONOTONIC, in nanoseconds. */
WL_API int64_t wl_clock_ns(void);
/* Whether the runtime of Ascend devices (ACL), which targets a2a3 and a5 take, opens in this
 * process. WL_UNSUPPORTED says what was looked for, and where. */
WL_API int32_t wl_ascend_find(wl_error_t* error);
/* Whether NVIDIA's driver, libcuda.so.1, which the target cuda takes, opens in this process.
 * WL_UNSUPPORTED says what was looked for, or what of it is too old. */
WL_API int32_t wl_cuda_find(wl_error_t* error);
/* How many devices this process sees, by CUDA_VISIBLE_DEVICES. */
WL_API int32_t wl_cuda_device_count(uint32_t* count, wl_error_t* error);
typedef struct wl_cuda_device_info {
  uint32_t struct_size;
  int32_t major; /* of its compute capability */
  int32_t minor;
  int32_t driver_version; /* 1000 * major + 10 * minor of the CUDA that the driver is for */
  int32_t multiprocessors;
  uint64_t total_bytes; /* of its memory */
  uint64_t free_bytes;
  char name[256]; /* NUL-terminated */
} wl_cuda_device_t;
/* Device `device` of those that the process sees; it gets a context there where it has none. */
WL_API int32_t wl_cuda_device(uint32_t device, wl_cuda_device_t* out, wl_error_t* error);
/* *can: 1 where the driver says that device `from` reaches the memory of device `to`, else 0. */
WL_API int32_t wl_cuda_peer(uint32_t from, uint32_t to, int32_t* can, wl_error_t* error);
/* How many cores, blocks of its kernel, the library runs at a time on the device, among all ranks
 * of the process that have it. WL_UNSUPPORTED but on the target cuda. */
WL_API int32_t wl_cuda_cores(uint32_t device, uint32_t* cores, wl_error_t* error);
/* Has ranks of this process take as many of those as a table of grids says, docs/cuda.md, from the
 * next operation on; NULL: as the file says that WINDLASS_CUDA_GRIDS names, or as many as there
 * are. WL_INVALID_ARGUMENT names the line of `table` that is wrong. */
WL_API int32_t wl_cuda_grids_use(const char* table, wl_error_t* error);
/* *rows: how many rows of the table in use are of devices like that one; 0: none, or no table.
 * WL_INVALID_ARGUMENT where WINDLASS_CUDA_GRIDS names none. */
WL_API int32_t wl_cuda_grids_rows(uint32_t device, uint32_t* rows, wl_error_t* error);
/* *address: `bytes` zeroed bytes of the device whose memory has `beside`, until they are freed.
 * WL_INVALID_ARGUMENT where no device has it. */
WL_API int32_t wl_cuda_memory_alloc(uint64_t beside, uint64_t bytes, uint64_t* address,
                                    wl_error_t* error);
/* Of wl_cuda_memory_alloc; 0: nothing. What the driver refuses stays allocated. */
WL_API void wl_cuda_memory_free(uint64_t address);

/* ---- groups and communicators ---- */

typedef struct wl_group_config {
  uint32_t struct_size;
  int32_t ranks;           /* 1 to WL_MAX_RANKS */
  uint32_t first_sequence; /* sequence of the first operation */
  int32_t cores;           /* cores to assume; 0 = wl_allowed_cores() */
  int64_t deadline_ns;     /* default deadline of every operation; 0 = 60 s */
  int32_t blocks;          /* threads that a rank's long operations run on, its own included: 1 to
                              WL_MAX_BLOCKS; 0 = one for each core that a rank has. On targets
                              that check, the cores of a rank, up to WL_MAX_DEVICE_CORES; 0 = 1 */
  int32_t adjust_threads;  /* 1: operations may do to any thread that calls them what
                              wl_thread_adopt allows; 0 */
  int32_t device_cores;    /* 0: the cpu executor; 1 to WL_MAX_DEVICE_CORES: the device executor,
                              as on silicon, on so many cores a rank (blocks is ignored) */
  const int32_t* hosts;    /* of each rank, from 0 on, none left out, for wl_group_share; NULL: all
                              ranks live on one */
} wl_group_config_t;

WL_API int32_t wl_group_create(const wl_group_config_t* config, wl_group_t** group,
                               wl_error_t* error);
/* Makes rank `rank`'s handle; once for each rank. */
WL_API int32_t wl_group_join(wl_group_t* group, int32_t rank, wl_comm_t** comm, wl_error_t* error);
/* Drops the creator's reference; joined handles keep the group alive. */
WL_API void wl_group_release(wl_group_t* group);

/* ---- processes of one host ----
 *
 * The ranks of a group may live in several processes. One of them shares the group's memory, which
 * has no name; the others inherit it, get it over a unix socket, or open it by the process and the
 * number that it has there. All attach to it, join their own ranks, and watch one another. How the
 * processes' names get from one to another is the callers'. Nobody writes another process's memory
 * but in windows: where an operation names other memory, each rank writes its own output alone. */

typedef struct wl_process {
  uint32_t struct_size;
  int32_t pid;
  uint64_t started;       /* tells it from a later process of that pid */
  uint64_t pid_namespace; /* in which the pid means it */
} wl_process_t;
/* Names the calling process to others. */
WL_API int32_t wl_process_self(wl_process_t* process, wl_error_t* error);
/* Fills in the rest for the process that has this pid now. WL_PEER_LOST: none has. */
WL_API int32_t wl_process_named(int32_t pid, wl_process_t* process, wl_error_t* error);

typedef enum wl_process_state {
  WL_PROCESS_UNKNOWN = 0, /* it lives on another host or in another pid namespace, or /proc hides
                           * it */
  WL_PROCESS_RUNS = 1,
  WL_PROCESS_STOPPED = 2, /* by a signal, such as SIGSTOP, or a debugger */
  WL_PROCESS_ENDED = 3
} wl_process_state;
/* One look: a wl_process_state. */
WL_API int32_t wl_process_look(const wl_process_t* process);

/* The memory of a group: *file, which has no name and can neither shrink nor grow, and is closed
 * once all have attached. Everything that decides how ranks move data is agreed there. WL_RESOURCE
 * says what was asked for and what is free. WL_UNSUPPORTED: config->hosts names several, and the
 * target, or device_cores, is for one host alone. */
WL_API int32_t wl_group_share(const wl_group_config_t* config, int32_t* file, wl_error_t* error);
/* Opens what another process of this host shares as `number`, its *file there: *file is this
 * process's. WL_PEER_LOST: it has ended, or has begun to. WL_UNSUPPORTED: it lives in another pid
 * namespace, where numbers mean something else. */
WL_API int32_t wl_file_open(const wl_process_t* owner, int32_t number, int32_t* file,
                            wl_error_t* error);
/* What tells an open file of this process from one that has its number later, here or where it was
 * opened from: equal for both. 0 where it is not open. */
WL_API uint64_t wl_file_inode(int32_t file);
WL_API void wl_file_close(int32_t file);
/* The group of such a file, for ranks of this process, which maps it until the group and all
 * handles of its ranks are gone. WL_INVALID_ARGUMENT: it holds none, or one of a library that lays
 * it out in another way. */
WL_API int32_t wl_group_attach(int32_t file, wl_group_t** group, wl_error_t* error);

/* From now on the end of `process`, in which `count` ranks live that have not closed, ends the
 * communicator: every rank gets WL_PEER_LOST, which names them, at once. The same where it ended
 * before. With silence_ns > 0, at least 5e8, also when that process, which watches others itself,
 * gives no sign of life for so long: stopped, or its host overloaded. WL_UNSUPPORTED: it lives in
 * another pid namespace. */
WL_API int32_t wl_group_watch(wl_group_t* group, const wl_process_t* process, const int32_t* ranks,
                              uint32_t count, int64_t silence_ns, wl_error_t* error);
/* Writes the failure record, for what only the caller can see: `code` other than WL_OK, the ranks
 * at fault, and what happened. The first failure stands; a later one changes nothing. Any
 * thread. */
WL_API int32_t wl_group_fail(wl_group_t* group, int32_t code, const int32_t* culprits,
                             uint32_t count, const char* message, wl_error_t* error);

/* ---- several hosts ----
 *
 * One process of each host shares a group's memory, by the same configuration but for cores; those
 * of the host attach to it. Then each opens its wire, which UCX carries, and connects to the others
 * before its ranks join. WINDLASS_UCX_NET_DEVICES names the network, loopback where it is not set:
 * whoever reaches it may write these processes' memory. How the wires' names get from one process
 * to another is the callers'. */

/* Opens UCX, by libwindlass-ucx.so: the file at `path`, or where it is NULL that beside this
 * library, else where the linker looks; once a process. What opens a wire does so where nobody has.
 * WL_UNSUPPORTED says what to install. */
WL_API int32_t wl_ucx_find(const char* path, wl_error_t* error);
/* UCX's version, and the network devices that are here, as "1.13.1: eth0 lo": *bytes of them, NUL
 * counted, where `room` suffices; else *bytes alone is set. WL_UNSUPPORTED also where no wire opens
 * by the settings of this process. */
WL_API int32_t wl_ucx_describe(char* text, uint64_t room, uint64_t* bytes, wl_error_t* error);
/* Opens the wire of this process, in which `count` ranks live, all of one host. WL_UNSUPPORTED says
 * what to install, or that no device is there as WINDLASS_UCX_NET_DEVICES names it; or there are
 * more than 64 hosts. WL_RESOURCE: no port of WINDLASS_UCX_PORT_RANGE is free. */
WL_API int32_t wl_group_open_wire(wl_group_t* group, const int32_t* ranks, uint32_t count,
                                  wl_error_t* error);
/* The name by which others connect to it: *bytes of them, where `room` suffices; else *bytes alone
 * is set. */
WL_API int32_t wl_group_wire_name(const wl_group_t* group, uint8_t* name, uint64_t room,
                                  uint64_t* bytes, wl_error_t* error);
/* `names`: of the wires of all processes of all hosts, side by side, each of so many bytes. With
 * silence_ns > 0, at least 5e8, a host of which nothing comes for so long is lost, with all its
 * ranks; before anything has come, so long and 10 s at least. */
WL_API int32_t wl_group_connect(wl_group_t* group, const uint8_t* names, const uint64_t* bytes,
                                uint32_t count, int64_t silence_ns, wl_error_t* error);

/* ---- ranks ---- */

WL_API int32_t wl_comm_rank(const wl_comm_t* comm);
WL_API int32_t wl_comm_size(const wl_comm_t* comm);

/* Collective. Ranks with the same color meet in a new communicator, ordered by (key, rank), with
 * its own control block. A negative color takes part and gets *out = NULL. Where a failure of comm
 * overtakes the call, some ranks may get the new communicator and others the failure: then the new
 * one is dead, with WL_ABORTED that names one of the latter. */
WL_API int32_t wl_comm_split(wl_comm_t* comm, int32_t color, int32_t key, int64_t deadline_ns,
                             wl_comm_t** out, wl_error_t* error);

/* Collective, with one list of `count` different ranks on every rank of comm, listed or not: those
 * listed meet in a new communicator, ordered as listed, with its own control block. A rank that is
 * not listed gets *out = NULL. Lists of several calls may overlap. A failure of comm that overtakes
 * the call ends the new communicator as wl_comm_split says. */
WL_API int32_t wl_comm_subset(wl_comm_t* comm, const int32_t* ranks, uint32_t count,
                              int64_t deadline_ns, wl_comm_t** out, wl_error_t* error);

/* Of a communicator that has failed, in any way: the ranks that live and call it meet in a new one,
 * in their old order, with its own control block. Once all have come that neither died nor closed,
 * or the deadline of the first of them passes, one decides who the members are; those that have not
 * come by then are left out: they get WL_ABORTED here, and from then on from every call on comm,
 * and reach nothing of the new one. Where a rank dies meanwhile, one stops, or one can't take part,
 * the others decide anew without it, which may last up to some seconds beyond the deadline. comm
 * stays as it is, to be closed. WL_INVALID_ARGUMENT: comm has not failed (wl_comm_abort ends it),
 * or this rank is in the new one already. WL_TIMEOUT: no decision came about; it may be called
 * again. WL_RESOURCE: what the new one takes is not to be had in this process; the others go on
 * without it. Over hosts, where a rank dies or gives up while they agree, some may get a new one
 * that has failed already, which they shrink again, while the others go on without them; hosts that
 * are cut off from one another go on apart. */
WL_API int32_t wl_comm_shrink(wl_comm_t* comm, int64_t deadline_ns, wl_comm_t** out,
                              wl_error_t* error);

/* Writes the failure record: every rank inside a call, or at its next one, gets Aborted with
 * `reason`. Any thread. The first failure stands; a later abort changes nothing, but that it ends
 * this rank's wl_comm_shrink where that is in progress. */
WL_API int32_t wl_comm_abort(wl_comm_t* comm, const char* reason, wl_error_t* error);
/* wl_group_fail as one of the ranks: it blames those that it names, where wl_comm_abort blames the
 * caller. */
WL_API int32_t wl_comm_fail(wl_comm_t* comm, int32_t code, const int32_t* culprits, uint32_t count,
                            const char* message, wl_error_t* error);

/* The failure record: WL_OK while the communicator lives. Any thread. */
WL_API int32_t wl_comm_status(wl_comm_t* comm, wl_error_t* error);

typedef struct wl_rank_state {
  uint32_t struct_size;
  int32_t busy;      /* 1 while a thread is inside an operation of this rank */
  uint32_t sequence; /* of that operation, or of the last one; of the last collective before a
                        one-sided one */
  int32_t operation; /* wl_operation */
  int32_t awaited;   /* rank it waits for, -1 none, -2 several */
  int32_t closed;
  uint32_t contested; /* times that a wait found another thread busy on the rank's core */
  int32_t item_owner; /* of the claimed item that it runs, or of the last of several: -1 none */
  int32_t item_phase;
  int32_t item;
  int32_t joined;     /* 1 once it has, or had, a handle */
  int32_t lost;       /* 1 once another process has seen its own end, or has given up its host */
  int32_t former;     /* its rank in the communicator that this was split or shrunk from: -1 none */
  int32_t pid;        /* of its process, where ranks live in several and it has joined; else 0 */
  uint64_t started;   /* this and the next one as wl_process_t has them; 0 on another host */
  uint64_t pid_namespace;
  int32_t host;       /* where it lives, from 0 on, as wl_group_config_t.hosts says */
  int32_t elsewhere;  /* 1 once it has joined on another host, which tells what it has entered */
} wl_rank_state_t;
/* One look at any rank's state line, with no lock. Any thread. */
WL_API int32_t wl_comm_state(const wl_comm_t* comm, int32_t rank, wl_rank_state_t* state);

#define WL_RECORDS 64         /* operations that are recorded of each rank */
#define WL_RECORD_TEXT 128    /* bytes of an operation's description */
#define WL_RECORD_INSIDE (-1) /* code of an operation in progress */
#define WL_RECORD_ENTERED (-2) /* of one of another host's rank: that it was entered is all that is
                                  known, and since when this host has known; bytes is 0 */

/* One recorded operation. Times are those of wl_clock_ns, good to about a microsecond. */
typedef struct wl_record {
  uint32_t struct_size;
  uint32_t sequence; /* of a one-sided operation, that of the last one before */
  int32_t operation; /* wl_operation */
  int32_t algorithm; /* wl_algorithm; WL_AUTO where the operation has one alone */
  int32_t dtype;     /* this, op and root as the operation takes them, else 0 */
  int32_t op;
  int32_t root;       /* or a one-sided operation's peer */
  int32_t code;       /* wl_code that the call returned, or WL_RECORD_INSIDE or _ENTERED */
  uint64_t count;     /* elements, bytes of a window, a signal's value, a transfer's version, or a
                         fingerprint */
  uint64_t bytes;     /* of one part, as wl_floor_config_t counts them; what this rank sends, where
                         parts differ in size; what a transfer writes to this rank */
  int64_t entered_ns; /* 0: not yet */
  int64_t left_ns;    /* 0 while inside. An operation that neither waited nor moved a lot lasts some
                         microseconds, and its end is not looked at: then it is entered_ns */
  int64_t waited_ns;  /* in waits of more than some microseconds; 0 while inside */
  char text[WL_RECORD_TEXT]; /* "all-to-all(1024 x f32 to each rank, push)" */
} wl_record_t;
/* What a rank did last, the newest first, with no lock: at most `capacity` operations, of which the
 * first may be in progress. records->struct_size says the size of each. Returns how many were
 * written, or -1 for a wrong argument. Any thread. */
WL_API int32_t wl_comm_recorded(const wl_comm_t* comm, int32_t rank, wl_record_t* records,
                                int32_t capacity);
/* The rank that entered operation `sequence` last, of those that have; one of another host did when
 * this one heard of it. -1 if no rank's record has it any more. Any thread. */
WL_API int32_t wl_comm_last_to_enter(const wl_comm_t* comm, uint32_t sequence);

typedef enum wl_peer_memory_form {
  WL_PEER_MEMORY_OPEN = 0,   /* ranks agree on it when an operation first needs it */
  WL_PEER_MEMORY_SHARED = 1, /* all ranks live in this process */
  WL_PEER_MEMORY_READV = 2,  /* by process_vm_readv; short parts of collectives through stages,
                              * unless one was told to read, or has no memory for a stage */
  WL_PEER_MEMORY_STAGE = 3,  /* its owner copies it to a stage that all map */
  WL_PEER_MEMORY_REFUSED = 4 /* one was told to read, and one does not: WL_UNSUPPORTED */
} wl_peer_memory_form;
typedef struct wl_peer_memory {
  uint32_t struct_size;
  int32_t form;  /* wl_peer_memory_form */
  char why[256]; /* UTF-8, NUL-terminated */
} wl_peer_memory_t;
/* How ranks in other processes get at memory outside windows, and why: the setting
 * WINDLASS_PEER_MEMORY, which is auto, readv or stage, and what the kernel permits. comm NULL: what
 * this process would say by itself. WL_INVALID_ARGUMENT: the setting is none of these. Any
 * thread. */
WL_API int32_t wl_comm_peer_memory(const wl_comm_t* comm, wl_peer_memory_t* memory,
                                   wl_error_t* error);

/* ---- profiles ----
 *
 * What kernels did in this process, by kernel, on targets that count it, a2a3sim and a5sim: others
 * say WL_UNSUPPORTED. Cycles are estimates by rates that native/isa/checked states; none was
 * measured on a device. A rank's run counts once it has left the operation, and at the latest once
 * all of this process's have. Any thread. */

#define WL_ENGINES 4 /* of a core: scalar, vector, loads, stores */
typedef struct wl_kernel_profile {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  char kernel[80];   /* UTF-8, NUL-terminated; of a library's: "launch of shift" */
  uint64_t runs;           /* of ranks: an operation of 4 ranks counts 4 */
  uint64_t cores;          /* that ran it; this and what follows in all runs */
  uint64_t cycles;         /* of those cores, each until its last engine is done */
  uint64_t overlap_cycles; /* in which a core's loads and its stores are both busy */
  uint64_t flags;          /* set */
  uint64_t barriers;
  uint64_t notifies;
  uint64_t buffer_bytes; /* of on-core memory, to the highest tile's end: the most of any core */
  uint64_t instructions[WL_ENGINES];
  uint64_t bytes[WL_ENGINES];
  uint64_t busy_cycles[WL_ENGINES];
} wl_kernel_profile_t;
/* Forgets what was counted. traces != 0: instructions are kept from here on, up to some 130,000. */
WL_API int32_t wl_profile_start(int32_t traces, wl_error_t* error);
/* *count = kernels that have run; writes at most `capacity` of them, in the order of their names.
 * kernels->struct_size says the size of each. */
WL_API int32_t wl_profile_kernels(wl_kernel_profile_t* kernels, uint32_t capacity, uint64_t* count,
                                  wl_error_t* error);
/* *length = bytes of the trace, of which at most `capacity` are written, without a NUL: JSON that
 * Chrome's and Perfetto's viewers read, a process for each rank and a thread for each engine of its
 * cores, a cycle as a microsecond, one operation after the other. What a rank does alone, as a put,
 * is rank 0's. */
WL_API int32_t wl_profile_trace(char* text, uint64_t capacity, uint64_t* length,
                                wl_error_t* error);

/* ---- reports from outside ----
 *
 * Of a group whose ranks live in several processes, by a process that has none of them: it reads
 * the group's memory, and writes nothing, so that it holds up no rank, whatever ranks do. Of what
 * stands there nothing is trusted. */

#define WL_REPORT_GROUPS 4096 /* of one process */

/* numbers[i] = that of memory which `process`, of this host, has open and shares, *count of them:
 * a group's for as long as it has it, and a window's while it is made. WL_PEER_LOST: it has ended.
 * WL_UNSUPPORTED: it lives in another pid namespace. WL_RESOURCE: this process may not look. */
WL_API int32_t wl_report_find(const wl_process_t* process, int32_t* numbers, uint32_t capacity,
                              uint64_t* count, wl_error_t* error);
/* The group whose memory `owner` has open as `number`. It is there until it is closed, also when
 * all of its processes have ended. WL_INVALID_ARGUMENT: it is none, or one of another build. */
WL_API int32_t wl_report_open(const wl_process_t* owner, int32_t number, wl_report_t** report,
                              wl_error_t* error);

typedef struct wl_report_group {
  uint32_t struct_size;
  int32_t ranks;
  uint64_t id;     /* tells it from all other groups of this host */
  uint64_t parent; /* that of the group that it was split or shrunk from; 0: of none */
  int64_t made_ns; /* as wl_clock_ns has it */
} wl_report_group_t;
WL_API int32_t wl_report_about(const wl_report_t* report, wl_report_group_t* group);
/* These four as wl_comm_state, wl_comm_recorded, wl_comm_peer_memory and wl_comm_status. */
WL_API int32_t wl_report_state(const wl_report_t* report, int32_t rank, wl_rank_state_t* state);
WL_API int32_t wl_report_recorded(const wl_report_t* report, int32_t rank, wl_record_t* records,
                                  int32_t capacity);
WL_API int32_t wl_report_peer_memory(const wl_report_t* report, wl_peer_memory_t* memory,
                                     wl_error_t* error);
WL_API int32_t wl_report_failure(const wl_report_t* report, wl_error_t* error);
WL_API void wl_report_close(wl_report_t* report);

/* 1 when no rank of this communicator can still touch memory named in an operation that failed:
 * none has failed, or no rank is inside a call. Any thread. */
WL_API int32_t wl_comm_quiescent(const wl_comm_t* comm);

/* Ends this rank's call in flight with WL_CLOSED, waits until that call has left, and marks the
 * rank as gone: a peer that waits for it later gets WL_ABORTED that names it. Idempotent. Any
 * thread. The handle stays valid, and every operation on it returns WL_CLOSED, until wl_comm_free.
 * The last rank of a process to leave gives back what the devices of its ranks there hold, but
 * windows that callers have, in no more than 5 s, and each rank ends its threads.
 *
 * WL_MISMATCH: the rank has left, and ranks disagreed in an operation that returned WL_OK here,
 * which no call of this rank has said. It compares the last operation of this rank with those of
 * the peers that have entered it, and with those of all that have left: so where ranks disagreed
 * the last to leave gets it, if nobody did before. WL_TIMEOUT: the call in flight stays. */
WL_API int32_t wl_comm_close(wl_comm_t* comm, wl_error_t* error);
/* Closes, then frees the handle. No other thread may use it any more. */
WL_API void wl_comm_free(wl_comm_t* comm);

/* ---- memory ---- */

/* Zeroed memory aligned to 64 bytes or to `alignment` if larger (a power of two). bytes = 0 gives a
 * valid pointer. WL_RESOURCE: a large one is more than what is free. */
WL_API int32_t wl_memory_alloc(uint64_t bytes, uint64_t alignment, void** memory,
                               wl_error_t* error);
WL_API void wl_memory_free(void* memory);
/* Bytes that this process may still take, by the machine and by its cgroups; UINT64_MAX where no
 * limit is known. Takes some 50 us. */
WL_API uint64_t wl_memory_available(void);

/* Collective: `bytes`, the same on every rank, zeroed, aligned to 4096. */
WL_API int32_t wl_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                wl_window_t** window, wl_error_t* error);
/* Collective: the same in the memory of devices, a part on each rank's: addresses are theirs, the
 * same for all devices of a process's ranks, and of no use to the host. Collectives take what lies
 * there as any memory of a device. wl_put, wl_get and wl_accumulate move between it and `local` on
 * the host or on a device; signals lie in windows of the host. WL_UNSUPPORTED where the target has
 * no devices that callers have tensors on, or these don't reach one another, or their memory can't
 * go to the processes that ranks live in. */
WL_API int32_t wl_device_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                       wl_window_t** window, wl_error_t* error);
/* NULL if `rank` is out of range. */
WL_API void* wl_window_address(const wl_window_t* window, int32_t rank);
WL_API uint64_t wl_window_bytes(const wl_window_t* window);
/* Drops this rank's reference and frees the handle. The memory goes when every rank has dropped its
 * own and no rank of the communicator can still touch it. */
WL_API void wl_window_free(wl_window_t* window);

/* ---- memory pools ----
 *
 * Memory that peers map, of which each rank takes pieces of any size by itself, when it wants.
 * Operations move them as they do what lies in windows; a move between this rank's memory and a
 * peer's part of a window takes them as the former. A pool has address space for `bytes` of every
 * rank in each process, and memory for the pages in which pieces lie. */

/* Collective: room for `bytes`, 1 or more and the same on every rank, in whole pages. */
WL_API int32_t wl_memory_pool_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                     wl_memory_pool_t** pool, wl_error_t* error);
/* *memory = `bytes` on this rank, zeroed, aligned to 64. bytes = 0 gives a valid pointer. Any
 * thread. WL_RESOURCE says what was asked for and what is free, in the pool or on this machine;
 * nothing has changed then. Once the communicator has failed, its failure: a process that was taken
 * for dead may still write to what it knew, so that nothing is taken anew there. */
WL_API int32_t wl_memory_pool_alloc(wl_memory_pool_t* pool, uint64_t bytes, void** memory,
                                    wl_error_t* error);
/* Gives back what wl_memory_pool_alloc gave, and pages in which nothing else lies to the system.
 * After an error that memory stays until wl_comm_quiescent. Any thread. WL_INVALID_ARGUMENT:
 * nothing that is taken begins there. */
WL_API int32_t wl_memory_pool_release(wl_memory_pool_t* pool, void* memory, wl_error_t* error);
/* Bytes that this rank has taken, each piece in whole 64. Any thread. */
WL_API uint64_t wl_memory_pool_used(const wl_memory_pool_t* pool);
/* As wl_window_free, with what is taken. */
WL_API void wl_memory_pool_free(wl_memory_pool_t* pool);

/* ---- files ---- */

/* Makes a new file of exactly `bytes` bytes with its blocks reserved. WL_RESOURCE when the disk is
 * full; then no file is left. */
WL_API int32_t wl_file_create(const char* path, uint64_t bytes, wl_error_t* error);
/* Maps a regular file of exactly `bytes` bytes, not zero; WL_INVALID_ARGUMENT says both sizes when
 * it has another. Readable and writable; what is written stays private to the mapping. */
WL_API int32_t wl_file_map(const char* path, uint64_t bytes, void** address, wl_error_t* error);
WL_API int32_t wl_file_unmap(void* address, uint64_t bytes, wl_error_t* error);
/* Both names change hands at once. WL_UNSUPPORTED where the file system cannot. */
WL_API int32_t wl_file_exchange(const char* a, const char* b, wl_error_t* error);
/* *size: how many bytes of a regular file, at most `room`, are in `bytes`: of one that its owner
 * alone may use as it is read, whatever its name leads to meanwhile; else WL_RESOURCE, or
 * WL_INVALID_ARGUMENT where no regular file is. */
WL_API int32_t wl_file_read_private(const char* path, void* bytes, uint64_t room, uint64_t* size,
                                    wl_error_t* error);
/* Renames; WL_INVALID_ARGUMENT when `to` exists. At once where the file system can refuse to
 * replace, else after a look. */
WL_API int32_t wl_file_publish(const char* from, const char* to, wl_error_t* error);

/* ---- tensors in local memory ---- */

typedef struct wl_tensor {
  uint32_t struct_size;
  int32_t dtype; /* wl_dtype */
  uint32_t ndim; /* 0 to WL_MAX_DIMS; 0 is a scalar */
  uint32_t reserved;
  void* data;
  const int64_t* shape;
  const int64_t* strides; /* elements */
} wl_tensor_t;

/* dst = src, cast to dst's dtype with one correctly rounded step; equal shapes, and no byte in
 * common. */
WL_API int32_t wl_tensor_copy(const wl_tensor_t* dst, const wl_tensor_t* src, wl_error_t* error);
/* 1 where an element of `a` and one of `b` share a byte, else 0. 1 as well where a long search has
 * settled nothing, as it may for views that are not cut from one tensor. */
WL_API int32_t wl_tensors_overlap(const wl_tensor_t* a, const wl_tensor_t* b);
/* Sets every element to the bytes at `element` (one element of dst's dtype). */
WL_API int32_t wl_tensor_fill(const wl_tensor_t* dst, const void* element, wl_error_t* error);
/* dst = fold of `count` sources in order, in the canonical order and accumulator; dst and sources
 * share shape and dtype. */
WL_API int32_t wl_tensor_fold(const wl_tensor_t* dst, const wl_tensor_t* const* sources,
                              uint32_t count, int32_t op, wl_error_t* error);
/* *hash = XXH64 with `seed` of the elements in row-major order, `dtype`'s bytes one after the
 * other: of the fold of `count` sources of one shape and dtype (of one source, its elements as they
 * are), rounded to dtype `wire` and then to `dtype`. Elements that lie so are read where they lie.
 */
WL_API int32_t wl_tensor_hash(const wl_tensor_t* const* sources, uint32_t count, int32_t op,
                              int32_t wire, int32_t dtype, uint64_t seed, uint64_t* hash,
                              wl_error_t* error);
WL_API int32_t wl_dtype_size(int32_t dtype);                   /* bytes; 0 if unknown */
WL_API int32_t wl_dtype_can_cast(int32_t from, int32_t to);    /* 1 or 0 */
WL_API int32_t wl_dtype_can_reduce(int32_t dtype, int32_t op); /* 1 or 0 */

/* ---- collectives ---- */
/* Buffers are contiguous, aligned to their dtype, and stay valid until the call returns; after an
 * error until wl_comm_quiescent. */

WL_API int32_t wl_barrier(wl_comm_t* comm, int64_t deadline_ns, wl_error_t* error);

/* A collective of equal parts: `operation` is one of
 *
 *   WL_OP_ALL_TO_ALL      part s of out on rank r = part r of in on rank s. By WL_PUSH or WL_PULL.
 *                         Never in place
 *   WL_OP_BROADCAST       out on every rank = in on the root. By WL_STAGED
 *   WL_OP_ALL_GATHER      part s of out on every rank = in of rank s
 *   WL_OP_REDUCE_SCATTER  out of rank r = part r of the reduction of all ranks' in
 *   WL_OP_ALL_REDUCE      out on every rank = the reduction of all ranks' in. By WL_ONE_PHASE,
 *                         WL_TWO_PHASE, WL_RING or WL_BIDIRECTIONAL_RING
 *   WL_OP_SCATTER         out of rank r = part r of in on the root
 *   WL_OP_GATHER          part s of out on the root = in of rank s
 *   WL_OP_REDUCE          out on the root = the reduction of all ranks' in
 *   WL_OP_ALL_GATHER_COLUMNS  out on every rank = the matrices of all ranks side by side: a part is
 *                         a matrix of `rows` rows, the same on every rank, and out has as many.
 *                         Never in place
 *
 * A buffer is one part, or as many parts in order as there are ranks: its elements say how long a
 * part is, the same on every rank. What is read, or written, on the root alone is ignored
 * elsewhere; `root` is ignored where there is none, `op` where nothing is reduced, and `rows` where
 * a part is no matrix. WL_AUTO stands for an algorithm everywhere, and is the one that a collective
 * without a choice takes.
 *
 * In place: where in and out are one part each they are one buffer; where one of them is a part and
 * the other holds parts, it is the rank's own part of that. One-phase all-reduce is in place for
 * small buffers alone. Buffers don't overlap otherwise.
 *
 * Reductions have the canonical order: left fold in ascending rank, f32 for f16 bf16 f8, one
 * rounding. Rings differ: they are deterministic for a rank count and a count. */
WL_API int32_t wl_collective(wl_comm_t* comm, int32_t operation, const void* in,
                             uint64_t in_elements, void* out, uint64_t out_elements, int32_t dtype,
                             int32_t op, int32_t algorithm, int32_t root, int64_t rows,
                             int64_t deadline_ns, wl_error_t* error);

/* ---- streams ----
 *
 * On the target cuda a collective may be put on a stream of its caller's: the call meets the other
 * ranks on the host, for no longer than its deadline, and returns once all of them have enqueued
 * it. The GPUs begin it once all ranks' streams have come to it, and what follows on a rank's
 * stream begins once the rank's part is over. Its deadline counts anew from when the rank's stream
 * has come to it.
 *
 * Streams of all ranks that capture one graph get it as part of the graph, which may be launched as
 * often as you like, in the order of what else the ranks enqueue, until the communicator closes.
 * Some that capture and some that don't, two graphs, or a graph where ranks live in several
 * processes: WL_UNSUPPORTED. */

/* wl_barrier or wl_collective, on `stream`, a CUstream of the rank's GPU, in its primary context; 0
 * and 1: the legacy default stream. Buffers lie in GPUs' memory. *ticket names the operation to
 * wl_enqueued_await; 0: a graph holds it. WL_UNSUPPORTED and WL_RESOURCE, for more captured
 * operations than a communicator holds, leave the communicator as it was, and all ranks get
 * them. */
WL_API int32_t wl_enqueue(wl_comm_t* comm, uint64_t stream, int32_t operation, const void* in,
                          uint64_t in_elements, void* out, uint64_t out_elements, int32_t dtype,
                          int32_t op, int32_t algorithm, int32_t root, int64_t rows,
                          int64_t deadline_ns, uint64_t* ticket, wl_error_t* error);
/* Waits until the operation is over, for no longer than limit_ns; *over says whether it is, 1 or 0.
 * Else the failure of the communicator, which ends it. Any thread. */
WL_API int32_t wl_enqueued_await(wl_comm_t* comm, uint64_t ticket, int64_t limit_ns, int32_t* over,
                                 wl_error_t* error);

/* ---- collectives whose parts differ in size ---- */
/* Counts and offsets are elements, one for each rank, and are read before the call returns. A part
 * lies within its buffer, which holds `elements` elements. Offsets NULL: the parts lie side by side
 * in ascending rank. */

/* Part d of in goes to rank d, part s of out comes from rank s. What a rank sends to a peer equals
 * what that peer receives from it: else WL_MISMATCH, before the peer's out is written from there.
 * The parts of out are apart; in and out do not overlap. */
WL_API int32_t wl_all_to_all_v(wl_comm_t* comm, const void* in, uint64_t in_elements,
                               const int64_t* send_counts, const int64_t* send_offsets, void* out,
                               uint64_t out_elements, const int64_t* receive_counts,
                               const int64_t* receive_offsets, int32_t dtype, int64_t deadline_ns,
                               wl_error_t* error);
/* The same where receivers do not know the counts: what comes lies side by side in out, in
 * ascending rank, and received_counts says how much came from each rank. Where any rank's out is
 * too small, every rank gets WL_INVALID_ARGUMENT that names it and what it needs; then nothing has
 * moved, and the communicator lives. */
WL_API int32_t wl_all_to_all_v_packed(wl_comm_t* comm, const void* in, uint64_t in_elements,
                                      const int64_t* send_counts, const int64_t* send_offsets,
                                      void* out, uint64_t out_elements, int64_t* received_counts,
                                      int32_t dtype, int64_t deadline_ns, wl_error_t* error);
/* out of every rank = the inputs of all ranks, in order. counts is the same on every rank: in holds
 * counts[rank] elements, out their sum. In place: in is the rank's own part of out. */
WL_API int32_t wl_all_gather_v(wl_comm_t* comm, const void* in, uint64_t in_elements, void* out,
                               uint64_t out_elements, const int64_t* counts, int32_t dtype,
                               int64_t deadline_ns, wl_error_t* error);
/* out of rank r = part r of the reduction of all inputs, in the canonical order. counts is the same
 * on every rank: in holds their sum, out counts[rank] elements. In place: out is the rank's own
 * part of in. */
WL_API int32_t wl_reduce_scatter_v(wl_comm_t* comm, const void* in, uint64_t in_elements, void* out,
                                   uint64_t out_elements, const int64_t* counts, int32_t dtype,
                                   int32_t op, int64_t deadline_ns, wl_error_t* error);

/* The three on a stream, as wl_enqueue has it. */
WL_API int32_t wl_enqueue_all_to_all_v(wl_comm_t* comm, uint64_t stream, const void* in,
                                       uint64_t in_elements, const int64_t* send_counts,
                                       const int64_t* send_offsets, void* out,
                                       uint64_t out_elements, const int64_t* receive_counts,
                                       const int64_t* receive_offsets, int32_t dtype,
                                       int64_t deadline_ns, uint64_t* ticket, wl_error_t* error);
WL_API int32_t wl_enqueue_all_gather_v(wl_comm_t* comm, uint64_t stream, const void* in,
                                       uint64_t in_elements, void* out, uint64_t out_elements,
                                       const int64_t* counts, int32_t dtype, int64_t deadline_ns,
                                       uint64_t* ticket, wl_error_t* error);
WL_API int32_t wl_enqueue_reduce_scatter_v(wl_comm_t* comm, uint64_t stream, const void* in,
                                           uint64_t in_elements, void* out, uint64_t out_elements,
                                           const int64_t* counts, int32_t dtype, int32_t op,
                                           int64_t deadline_ns, uint64_t* ticket,
                                           wl_error_t* error);

/* ---- steps ---- */

/* all = the `count` words that each rank brings, in rank order: one step of `operation`, which is
 * WL_OP_REGISTER, one of WL_OP_LINK to WL_OP_CHECK_REPLICAS, or of WL_OP_EXPERTS_OPEN to
 * WL_OP_STORE_TO_HOST. Ranks at steps of other operations, or in any other call, get WL_MISMATCH
 * before a word moves. */
WL_API int32_t wl_exchange(wl_comm_t* comm, int32_t operation, const int64_t* own, int64_t* all,
                           uint64_t count, int64_t deadline_ns, wl_error_t* error);
/* The same of counts[rank] bytes from each rank; counts is the same on every rank. `own` holds
 * `own_bytes`, `all` holds `all_bytes`. */
WL_API int32_t wl_exchange_v(wl_comm_t* comm, int32_t operation, const void* own,
                             uint64_t own_bytes, void* all, uint64_t all_bytes,
                             const int64_t* counts, int64_t deadline_ns, wl_error_t* error);

/* ---- kernels of libraries ---- */
/* A library of kernels is a file that CMake's windlass_add_kernel builds, of one target. It exports
 * a table of its kernels and their arguments, windlass/kernel_table.h. */

typedef struct wl_kernel_library wl_kernel_library_t;

/* Loads the library at `path`, whose code stays in the process as long as it lives: *library does,
 * too, and the same file gives the same one again. `target`: that it is to be for. The file, its
 * machine and its table are checked first. WL_INVALID_ARGUMENT: it is none, or not whole;
 * WL_UNSUPPORTED: it is for another target, machine or Windlass. */
WL_API int32_t wl_kernel_library_load(const char* path, const char* target,
                                      wl_kernel_library_t** library, wl_error_t* error);
WL_API int32_t wl_kernel_count(const wl_kernel_library_t* library);
/* Of kernel `kernel`, from 0: its name, and what it takes, as "shift(f32 in, written f32 out)".
 * NULL: there is none. */
WL_API const char* wl_kernel_name(const wl_kernel_library_t* library, int32_t kernel);
WL_API const char* wl_kernel_signature(const wl_kernel_library_t* library, int32_t kernel);

typedef enum wl_argument_kind { WL_ARGUMENT_TENSOR = 0, WL_ARGUMENT_SCALAR = 1 } wl_argument_kind;

/* Collective: runs the kernel, with the same dtypes, shapes and scalars on every rank, where they
 * and the kernel are compared: else WL_MISMATCH, before a rank touches what another that disagrees
 * has. A distributed argument lies in a window of comm, at the same place on every rank.
 *
 * arguments: for each, in order, as 64-bit words: its kind, a wl_argument_kind, its dtype, and then
 * of a scalar its bits; of a tensor its address, the wl_window_t* that it lies in or 0, 1 where it
 * may not be written or 0, ndim, shape[ndim], strides[ndim]. Tensors are contiguous.
 *
 * The waits of a kernel end with the deadline, an abort and the loss of a peer, as all do; one that
 * never leaves a phase ends nothing, and holds up its rank. WL_UNSUPPORTED: ranks live on several
 * hosts. */
WL_API int32_t wl_launch(wl_comm_t* comm, const wl_kernel_library_t* library, int32_t kernel,
                         const int64_t* arguments, uint64_t words, int64_t deadline_ns,
                         wl_error_t* error);

/* ---- expert parallelism ---- */

/* What all ranks of a communicator have alike: rank r has experts / ranks of the experts, from
 * r * experts / ranks on. */
typedef struct wl_experts {
  uint32_t struct_size;
  int32_t dtype;      /* of tokens: f64 f32 f16 bf16 f8e5m2 f8e4m3 */
  uint32_t ranks;     /* the communicator's */
  uint32_t experts;   /* a multiple of ranks */
  uint32_t top_k;     /* experts of a token, at most: 1 to WL_MAX_TOP_K */
  uint32_t alignment; /* an expert's rows begin at a multiple of so many */
  uint32_t quantised; /* 1: tokens of f32, f16 or bf16 go as f8e4m3, with an f32 scale for each 128
                         elements of a row: s = max(largest magnitude, 1e-4) / 448 and
                         q = element * (1 / s), to nearest even */
  uint32_t reserved;
  uint64_t hidden;    /* elements of a token */
  uint64_t tokens;    /* that a rank brings, at most */
  uint64_t rows;      /* that a rank has room for */
} wl_experts_t;
#define WL_MAX_TOP_K 64

/* Of a rank's table, in which it notes where its tokens go: its bytes, and the offsets of two
 * arrays of i32, for each of its experts the first row and how many it got. And of its buffer: its
 * bytes, and where scales (f32, ceil(hidden / 128) a row, where quantised) and records begin,
 * behind the rows, at 0. A record is {i32 rank, i32 token, i32 slot, f32 weight}; rank -1: the row
 * is nobody's, between the rows of two experts. */
typedef struct wl_experts_layout {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t table_bytes;
  uint64_t starts_at;
  uint64_t gets_at;
  uint64_t buffer_bytes;
  uint64_t scales_at;
  uint64_t records_at;
} wl_experts_layout_t;
WL_API int32_t wl_experts_lay_out(const wl_experts_t* experts, wl_experts_layout_t* layout,
                                 wl_error_t* error);

/* Notes in the table of this rank where `count` tokens go, and sends nothing.
 *
 * table: of the layout's size, in a window of comm. number: of the table among those of comm, alike
 * on all ranks, which compare it. ids: [count, top_k], of WL_I32 or WL_I64: an
 * expert, or -1 for none, each at most once for a token. weights: [count, top_k] of f32, or NULL:
 * 1. */
WL_API int32_t wl_experts_route(const wl_comm_t* comm, const wl_experts_t* experts, void* table,
                                uint32_t number, uint64_t count, const void* ids,
                                int32_t ids_dtype, const float* weights, wl_error_t* error);
/* Collective: puts the tokens that the table has noted, a row each, into the buffers of the ranks
 * whose experts they are for, in the order of experts, then of ranks, then of tokens; and a record
 * for each row. A token is read once, and quantised once. Again, with tables that all ranks leave
 * as they are: tokens go where the last ones went.
 *
 * buffer: of the layout's size, in a window of comm. tokens: [count, hidden]; they share no byte.
 *
 * WL_INVALID_ARGUMENT of all ranks, with nothing moved, where the experts of any get more rows than
 * it has room for. */
WL_API int32_t wl_experts_dispatch(wl_comm_t* comm, void* table, void* buffer, const void* tokens,
                                   uint64_t count, int64_t deadline_ns, wl_error_t* error);
/* Collective: token t of `out`, [count, hidden], of as many as the dispatch brought, = the sum over
 * its experts, in the order of its ids, of the weight times the row of `outputs` at which the
 * dispatch put it: in f32, or f64 of f64, each step rounded, and once to `dtype`. None: zeros.
 *
 * outputs: [rows, hidden] of `dtype`, in a window of comm; the buffer's own rows may be it. */
WL_API int32_t wl_experts_combine(wl_comm_t* comm, void* table, const void* outputs, int32_t dtype,
                                  void* out, uint64_t count, int64_t deadline_ns,
                                  wl_error_t* error);

/* ---- one-sided operations ---- */
/* Called by one rank alone. A window's memory stays until no rank holds it: what a peer that has
 * freed its handle is sent lands where nobody reads. A peer that has closed the communicator is
 * WL_ABORTED, which names it. */

/* remote = local, in `peer`'s part of the window; `peer` may be the rank itself. Both have one
 * dtype and one shape, are aligned to the dtype, and share no byte. remote->data is symmetric: an
 * address in this rank's own part of the window, which stands for the same offset in the peer's. On
 * return `local` may be changed; the peer sees the data once it has waited for a notify that
 * follows. WL_TIMEOUT: the peer lives on another host, which has not taken it within the
 * communicator's deadline. */
WL_API int32_t wl_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* remote += local, element by element, with the arithmetic of a sum of two in a reduction. No add
 * is lost, whichever ranks add to the same elements at the same time, but the order of the adds is
 * open, and with it the rounding of floats. Plain stores, put included, are not ordered with adds
 * to the same elements: separate them by signals or a barrier. f32, f16, bf16, i32, i16, i8; else
 * WL_UNSUPPORTED. Otherwise like wl_put. */
WL_API int32_t wl_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* local = remote. On return `local` is complete. WL_TIMEOUT as of wl_put. */
WL_API int32_t wl_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* The same by the rank's device where `local` lies in a device's memory, and the window on devices
 * or in the host's memory: what goes to and from the host passes through pinned memory. On return
 * the move is over. WL_UNSUPPORTED, with the communicator as it was: a target that has no devices
 * on which callers have tensors, memory that no device has, and what lies on another device than
 * the rank's, outside of windows, strided or added to or from what lies on devices. WL_DEVICE ends
 * the communicator. */
WL_API int32_t wl_device_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_accumulate(wl_comm_t* comm, const wl_window_t* window,
                                    const wl_tensor_t* local, int32_t peer,
                                    const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* What the rank's device does with a tensor of the caller's that lies in a device's memory, of the
 * rank's own device or of another one: every bit of its elements becomes 0; *hash as wl_tensor_hash
 * gives it of the tensor alone, in its own dtype, for which the elements pass through pinned memory
 * piece by piece. Operations of this rank alone, as wl_put and wl_get to itself; errors as of
 * wl_device_put. */
WL_API int32_t wl_device_clear(wl_comm_t* comm, const wl_tensor_t* tensor, wl_error_t* error);
WL_API int32_t wl_device_hash(wl_comm_t* comm, const wl_tensor_t* tensor, uint64_t seed,
                              uint64_t* hash, wl_error_t* error);

/* A signal is `size` lines of a window, one for each rank: line r of a rank's own part holds the
 * u32 that rank r, and nobody else, sets there. It starts at 0 and moves forward, by less than 2^30
 * at a time and never 2^30 ahead of what its reader has waited for; so it may wrap. */
#define WL_SIGNAL_LINE_BYTES 64

/* Sets this rank's line of the peer's signal to `value`. A release: whoever waits for the value
 * sees every put, and every other store, that this rank made before. `signal` is the offset of the
 * signal's first line, a multiple of WL_SIGNAL_LINE_BYTES. */
WL_API int32_t wl_notify(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                         uint32_t value, wl_error_t* error);
/* Returns once `peer`'s line of this rank's signal has reached `value`; WL_TIMEOUT names the peer.
 */
WL_API int32_t wl_wait(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                       uint32_t value, int64_t deadline_ns, wl_error_t* error);
/* One look: *reached is 1 where wl_wait would return at once, else 0. */
WL_API int32_t wl_test(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                       uint32_t value, int32_t* reached, wl_error_t* error);

/* ---- transfers: a plan bound to memory ---- */

/* A plan reaches the native side as 64-bit words, so that Java writes them without structs.
 *
 * bindings: for each local view, in order: dtype, ndim, address, low, bytes, shape[ndim],
 * strides[ndim]. `low` and `bytes` are the allocation that the view lies in; every element must lie
 * inside.
 *
 * stages: for each box that this rank stages, in order: phase, dtype, ndim, offset, readers,
 * shape[ndim], then the ranks that read it. It lies dense at `offset` bytes of one of two stages,
 * that of even or that of odd phases, is written in its phase, and read in the next: after that
 * another box may lie there. The stages are the transfer's own memory, as long as the boxes need.
 *
 * chunks: for each chunk that this rank writes, in order: phase, target_binding, wire_dtype, op,
 * ndim, sources, length[ndim], target_start[ndim], then for each source: rank, binding,
 * start[ndim]. `op` is a wl_reduce_op, used when sources > 1. Starts are in the coordinates of the
 * binding's shape; a source binding is an index into that rank's source bindings. Target binding
 * -1 - n is box n of this rank's stages; source binding -1 - n is box n of those that `rank` stages
 * and this rank reads. A chunk that reads a box runs in the phase after the box's; any other in
 * `phase`. Every rank ends a phase before any begins the next. What chunks of several targets take
 * from the same sources is read once for all of them. */
typedef struct wl_transfer_config {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t fingerprint; /* of (layouts, shapes, dtypes, names); must agree on every rank */
  const int64_t* source_bindings;
  uint64_t source_binding_words;
  uint32_t source_binding_count;
  uint32_t target_binding_count;
  const int64_t* target_bindings;
  uint64_t target_binding_words;
  const int64_t* chunks;
  uint64_t chunk_words;
  uint64_t chunk_count;
  const int64_t* stages;
  uint64_t stage_words;
  uint64_t stage_count;
} wl_transfer_config_t;

/* Collective: exchanges bindings, checks every chunk against the bindings at both ends, and
 * allocates the stages. */
WL_API int32_t wl_transfer_create(wl_comm_t* comm, const wl_transfer_config_t* config,
                                  int64_t deadline_ns, wl_transfer_t** transfer, wl_error_t* error);
/* Collective: runs every chunk once. `version` must agree. */
WL_API int32_t wl_transfer_run(wl_transfer_t* transfer, uint64_t version, int64_t deadline_ns,
                               wl_error_t* error);
/* What a rank names in wl_transfer_move beside versions, which are 0 or more. */
#define WL_ANY_VERSION (-1) /* the one that others name */
#define WL_NO_VERSION (-2)  /* none: it takes no part, says so to its peers, and then aborts */
/* Collective: the same where ranks name the transfer, by a number that they give it alike, and a
 * version: *version is what this rank names, and on return the version that they all name, or
 * WL_ANY_VERSION where they don't or not all have come: nothing has moved then. Ranks that name
 * different transfers or versions get WL_MISMATCH, and the communicator goes on; so it does after
 * WL_UNSUPPORTED, of all ranks, where they may not read memory outside windows as one was told to.
 * Peers of one that takes no part get its abort. */
WL_API int32_t wl_transfer_move(wl_transfer_t* transfer, uint64_t number, int64_t* version,
                                int64_t deadline_ns, wl_error_t* error);
/* Calls of wl_transfer_move that have begun to move, or may have: all ranks had come. Any
 * thread. */
WL_API uint64_t wl_transfer_begun(const wl_transfer_t* transfer);
/* moved[i] = bytes written to target binding i of `rank`, which is of this process, or of all its
 * ranks when it is -1, in the run in progress or by the last one; for the first `count` bindings.
 * Once they are all its bytes, its memory holds what was sent, even if the run fails. Any
 * thread. */
WL_API int32_t wl_transfer_progress(const wl_transfer_t* transfer, int32_t rank, uint64_t* moved,
                                    uint32_t count, wl_error_t* error);
/* *hash as wl_tensor_hash gives it of the boxes of `length` at `start` (as many values as the
 * binding has dimensions) that source binding `binding` has on each of `count` ranks, which keep
 * their sources as they are. A call of this rank alone, but an operation all the same: until it
 * returns, the communicator is not quiescent, so that a rank that fails meanwhile knows how long to
 * keep them; once one has failed it reads nothing. WL_UNSUPPORTED: a source is of another process,
 * outside every window. */
WL_API int32_t wl_transfer_hash(wl_transfer_t* transfer, uint32_t binding, const int32_t* ranks,
                                uint32_t count, const int64_t* start, const int64_t* length,
                                int32_t op, int32_t wire, int32_t dtype, uint64_t seed,
                                uint64_t* hash, wl_error_t* error);
/* Bytes of this rank's stages. Any thread. */
WL_API uint64_t wl_transfer_staging_bytes(const wl_transfer_t* transfer);
WL_API void wl_transfer_free(wl_transfer_t* transfer);

/* ---- the floor ---- */

/* Pinned threads, one a core, move just the bytes that an operation must move, split in advance,
 * inputs rewritten before each iteration, with no entry or exit protocol: every input is read once
 * and every output written once. Reductions are f32 sums. */
typedef struct wl_floor_config {
  uint32_t struct_size;
  int32_t operation; /* WL_OP_ALL_TO_ALL, _BROADCAST (in place), _ALL_GATHER, _REDUCE_SCATTER or
                        _ALL_REDUCE */
  int32_t ranks;
  int32_t iterations;
  uint64_t bytes; /* all-to-all: from one rank to one peer; broadcast and all-reduce: the buffer;
                     all-gather: what one rank contributes; reduce-scatter: what one rank receives.
                     A reduction's is a multiple of 4. */
} wl_floor_config_t;
WL_API int32_t wl_floor_measure(const wl_floor_config_t* config, double* median_us,
                                wl_error_t* error);
/* The same of a dispatch and a combine, the sum of what either takes: every token is read once and
 * written to each of its rows, which are streamed, and each row is read once, weighed and added up.
 * `ids` are of all ranks, [ranks, tokens, top_k]; tokens are not quantised. */
WL_API int32_t wl_floor_experts(const wl_experts_t* experts, const int32_t* ids, int32_t iterations,
                                double* median_us, wl_error_t* error);
/* What an exchange of parts does before and behind it to bring rows to experts, by one thread:
 * row i of dst = row order[i] of src; and row t of dst = the sum over k of weights[t * top_k + k]
 * times row order[t * top_k + k] of src. */
WL_API int32_t wl_floor_permute(void* dst, const void* src, const int32_t* order, uint64_t rows,
                                uint64_t row_bytes, wl_error_t* error);
WL_API int32_t wl_floor_weigh(void* dst, const void* src, const int32_t* order,
                              const float* weights, uint64_t tokens, uint32_t top_k,
                              uint64_t hidden, int32_t dtype, wl_error_t* error);
/* The same for `copies` contiguous copies, or copy-casts, of `bytes` source bytes. Median over
 * iterations. `memory` holds the source and each copy, the longer of the two on whole lines of 64
 * bytes, from its first line on, and the source is in no cache as it is read; NULL: memory of the
 * call's own, and a source that was just written. */
WL_API int32_t wl_floor_copy(void* memory, uint64_t memory_bytes, uint64_t bytes, uint32_t copies,
                             int32_t from_dtype, int32_t to_dtype, int32_t iterations,
                             double* median_us, wl_error_t* error);

#if defined(__cplusplus)
} /* extern "C" */
#endif
