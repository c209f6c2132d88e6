/* SPDX-License-Identifier: Apache-2.0
 * The C ABI of Windlass: everything that Java, or any other language, sees of the native library.
 *
 * Conventions
 *  - Every function that can fail returns a wl_code and fills `error` when it is not NULL. There is
 *    no thread-local last error and no callback. No C++ exception crosses this boundary.
 *  - Structs start with `uint32_t struct_size = sizeof(struct)`. A call refuses a smaller one, and
 *    fills an `error` no further than its struct_size: with 0, there is no message.
 *  - The library leaves the affinity and the scheduling of a calling thread unchanged, except where
 *    wl_thread_adopt or wl_group_config_t.adjust_threads allows more.
 *  - A wl_comm_t is one rank's handle. Only one thread at a time may call an operation on it. Any
 *    thread may call abort, close and the read-only queries at any time.
 *  - `deadline_ns` is relative. 0 means the communicator's own deadline. A negative value is
 *    refused.
 *  - Counts are elements unless a name says bytes. Strides are in elements. They may be zero (on
 *    sources only) but never negative.
 *  - Numbers of enums are ABI: append only.
 *  - Every change that adds, removes or changes a declaration raises WL_ABI_VERSION by one. Load a
 *    library only if its wl_abi_version() is the version that you compiled against. Then all
 *    declared functions exist. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define WL_API __attribute__((visibility("default")))
#define WL_ABI_VERSION 17u

typedef enum wl_code {
  WL_OK = 0,
  WL_INVALID_ARGUMENT = 1, /* nothing was sent */
  WL_MISMATCH = 2, /* ranks disagree; the message names both sides. If a rank does not wait for the
                      ranks that it disagrees with, its next call or wl_comm_close returns this */
  WL_DEADLINE_EXCEEDED = 3, /* the message names the ranks that are behind */
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
  WL_C64 = 16, /* complex of two f32; can be moved, but not cast or reduced */
  WL_F8E4M3FNUZ = 17, /* this and the next can only be moved, too */
  WL_F8E5M2FNUZ = 18,
  WL_DTYPE_COUNT = 19
} wl_dtype;

typedef enum wl_reduce_op {
  WL_SUM = 0,
  WL_MAX = 1,
  WL_MIN = 2,
  WL_PRODUCT = 3,
  WL_AVG = 4,
  WL_AND = 5, /* bit by bit, as are the next two; for integers */
  WL_OR = 6,
  WL_XOR = 7,
  /* The sum of every rank's input times that rank's wl_call_t.factor, for floats. Only collectives
   * of equal parts compute it. */
  WL_PREMULTIPLIED_SUM = 8,
  WL_REDUCE_OP_COUNT = 9
} wl_reduce_op;

typedef enum wl_algorithm {
  WL_AUTO = 0,
  WL_PUSH = 1,      /* all-to-all: every rank writes into its peers' outputs */
  WL_PULL = 2,      /* all-to-all: every rank reads from its peers' inputs */
  WL_STAGED = 3,    /* broadcast: the root copies to a staging buffer, every other rank reads */
  WL_ONE_PHASE = 4, /* all-reduce: every rank folds every input */
  WL_TWO_PHASE = 5, /* all-reduce: every rank folds its share and writes it to every rank */
  WL_RING = 6,      /* all-reduce: sums, then results, travel from rank to rank */
  WL_BIDIRECTIONAL_RING = 7 /* all-reduce: half of the elements travels each way */
} wl_algorithm;

/* The operation that a rank is in. It is the first part of every collective's digest, too. */
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
  WL_OP_SUBGROUP = 22,
  WL_OP_FIRST_ONE_SIDED = WL_OP_PUT, /* operations from here to the last one, and WL_OP_SHRINK, take
                                        no sequence */
  WL_OP_LAST_ONE_SIDED = WL_OP_ACCUMULATE,
  /* Operations that are made of steps; see wl_submit. */
  WL_OP_LINK = 23,
  WL_OP_LINK_REGISTER = 24,
  WL_OP_LINK_MOVE = 25, /* a sender's send, a receiver's receive */
  WL_OP_LINK_CHECK = 26,
  WL_OP_CHECK_REPLICAS = 27,
  WL_OP_ALL_GATHER_DIM = 28,
  WL_OP_SHRINK = 29,
  WL_OP_MEMORY_POOL = 30, /* memory pool creation */
  WL_OP_LAUNCH = 31,      /* launch of a library's kernel */
  WL_OP_EXPERT_DISPATCH = 32,
  WL_OP_EXPERT_COMBINE = 33,
  WL_OP_EXPERTS_OPEN = 34, /* this and the next two are like WL_OP_LINK to WL_OP_CHECK_REPLICAS */
  WL_OP_MANIFEST_OPEN = 35,
  WL_OP_STORE_TO_HOST = 36, /* storing of a manifest's contexts */
  WL_OP_DEVICE_WINDOW = 37, /* creation of a window on devices */
  WL_OP_SCAN = 38,
  WL_OP_EXCLUSIVE_SCAN = 39,
  WL_OP_REDUCE_SCATTER_DIM = 40,
  WL_OP_SEND = 41,
  WL_OP_RECEIVE = 42,
  WL_OP_SEND_RECEIVE = 43, /* several messages */
  WL_OP_FIRST_MESSAGE = WL_OP_SEND, /* these take no sequence, either */
  WL_OP_LAST_MESSAGE = WL_OP_SEND_RECEIVE,
  WL_OP_COUNT = 44
} wl_operation;

#define WL_MAX_RANKS 4096
#define WL_MAX_DIMS 16
#define WL_MAX_BLOCKS 64
#define WL_MAX_PHASES 1048576 /* phases of a transfer */
/* Limits of groups with device_cores. */
#define WL_MAX_DEVICE_RANKS 64
#define WL_MAX_DEVICE_CORES 16
#define WL_ERROR_FAULTY_RANKS 64
#define WL_ERROR_MESSAGE 2048

typedef struct wl_error {
  uint32_t struct_size;
  int32_t code;          /* wl_code */
  int32_t operation;     /* wl_operation in which it was observed; for WL_PEER_LOST, the operation
                            that the observer was in, if any */
  int32_t observer;      /* rank that saw it first, or -1 */
  uint32_t sequence;     /* operation sequence at which it was seen */
  int32_t faulty_rank_count; /* if more than WL_ERROR_FAULTY_RANKS, only the first are listed */
  int32_t faulty_ranks[WL_ERROR_FAULTY_RANKS];
  char message[WL_ERROR_MESSAGE]; /* UTF-8, NUL-terminated: what happened, where, what to do */
} wl_error_t;

typedef struct wl_group wl_group_t;       /* ranks of a start, as one process holds them */
typedef struct wl_comm wl_comm_t;         /* one rank of a communicator */
typedef struct wl_window wl_window_t;     /* one rank's handle of a window */
typedef struct wl_memory_pool wl_memory_pool_t; /* one rank's handle of a memory pool */
typedef struct wl_transfer wl_transfer_t; /* one rank's handle of a bound plan */
typedef struct wl_report wl_report_t;     /* a group, seen by a process with no rank of it */

/* ---- library ---- */

WL_API uint32_t wl_abi_version(void);
WL_API const char* wl_version(void); /* "0.1.0" */
WL_API const char* wl_target(void);  /* "sim" */
WL_API const char* wl_code_name(int32_t code);
/* Name of an operation of several ranks, such as "all-gather-v". */
WL_API const char* wl_operation_name(int32_t operation);
/* Name of the method that calls the operation, such as "allGatherv". */
WL_API const char* wl_call_name(int32_t operation);
/* Name of an algorithm, such as "one-phase". */
WL_API const char* wl_algorithm_name(int32_t algorithm);
/* Vector path in use: "avx512-fp16", "avx512-bf16", "avx512", "avx2" or "portable". WINDLASS_ISA
 * selects a lower one. */
WL_API const char* wl_isa_path(void);
/* Number of cores that this process may use: the smaller of affinity and cgroup quota, at least 1.
 */
WL_API int32_t wl_allowed_cores(void);
/* Marks the calling thread as made for operations. During a wait, the library may move such a
 * thread among the cores that its affinity mask allows. It does so with a mask of one core, which
 * it takes back at once. It may also request short time slices during a wait, and a later wait
 * restores the previous ones.
 * If place is 0 or more, also moves the thread now, to the core of that number, modulo the number
 * of cores that the mask allows. If stays is not 0, the mask is this core from then on. Threads
 * that the thread creates inherit it, except threads that the library creates in a call.
 * Returns 1 if the thread was marked before, and then does nothing. Otherwise returns 0. */
WL_API int32_t wl_thread_adopt(int32_t place, int32_t stays);
/* CLOCK_MONOTONIC, in nanoseconds. */
WL_API int64_t wl_clock_ns(void);
/* Checks that the runtime of Ascend devices (ACL), which targets a2a3 and a5 use, can be opened in
 * this process. WL_UNSUPPORTED says what was searched for, and where. */
WL_API int32_t wl_ascend_find(wl_error_t* error);
/* Checks that NVIDIA's driver, libcuda.so.1, which the target cuda uses, can be opened in this
 * process. WL_UNSUPPORTED says what was searched for, or what part of it is too old. */
WL_API int32_t wl_cuda_find(wl_error_t* error);
/* Number of devices that this process sees, according to CUDA_VISIBLE_DEVICES. */
WL_API int32_t wl_cuda_device_count(uint32_t* count, wl_error_t* error);
typedef struct wl_cuda_device_info {
  uint32_t struct_size;
  int32_t major; /* compute capability */
  int32_t minor;
  int32_t driver_version; /* 1000 * major + 10 * minor of the driver's CUDA version */
  int32_t multiprocessors;
  uint64_t total_bytes; /* size of its memory */
  uint64_t free_bytes;
  char name[256]; /* NUL-terminated */
} wl_cuda_device_t;
/* Reports device number `device` among the devices that the process sees. Creates a context on the
 * device if the process has none there. */
WL_API int32_t wl_cuda_device(uint32_t device, wl_cuda_device_t* out, wl_error_t* error);
/* Sets *can to 1 if the driver reports that device `from` reaches the memory of device `to`,
 * otherwise to 0. */
WL_API int32_t wl_cuda_peer(uint32_t from, uint32_t to, int32_t* can, wl_error_t* error);
/* Number of cores (blocks of its kernel) that the library runs at a time on the device, over all
 * ranks of the process that use it. WL_UNSUPPORTED on every target except cuda. */
WL_API int32_t wl_cuda_cores(uint32_t device, uint32_t* cores, wl_error_t* error);
/* Sets how many of the cores that wl_cuda_cores reports ranks of this process use from the next
 * operation on. `table` is a table of grids; see docs/reference/gpus.md. If it is NULL, the file
 * named in WINDLASS_CUDA_GRIDS decides. Without that file, ranks use all cores.
 * WL_INVALID_ARGUMENT names the line of `table` that is wrong. */
WL_API int32_t wl_cuda_grids_use(const char* table, wl_error_t* error);
/* Sets *rows to the number of rows of the current table for devices like this one. 0: none, or no
 * table. WL_INVALID_ARGUMENT if the file that WINDLASS_CUDA_GRIDS names is not a valid table. */
WL_API int32_t wl_cuda_grids_rows(uint32_t device, uint32_t* rows, wl_error_t* error);
/* Allocates `bytes` zeroed bytes at *address, on the device whose memory contains `beside`. They
 * stay allocated until they are freed. WL_INVALID_ARGUMENT if no device's memory contains `beside`.
 */
WL_API int32_t wl_cuda_memory_alloc(uint64_t beside, uint64_t bytes, uint64_t* address,
                                    wl_error_t* error);
/* Frees memory of wl_cuda_memory_alloc. 0 does nothing. If the driver refuses, the memory stays
 * allocated. */
WL_API void wl_cuda_memory_free(uint64_t address);

/* ---- groups and communicators ---- */

typedef struct wl_group_config {
  uint32_t struct_size;
  int32_t ranks;           /* 1 to WL_MAX_RANKS */
  uint32_t first_sequence; /* sequence of the first operation */
  int32_t cores;           /* cores to assume; 0 = wl_allowed_cores() */
  int64_t deadline_ns;     /* default deadline of every operation; 0 = 60 s */
  int32_t blocks;          /* threads that run a rank's long operations, its own included: 1 to
                              WL_MAX_BLOCKS; 0 = one for each core that a rank has. On targets that
                              check, the cores of a rank, up to WL_MAX_DEVICE_CORES; 0 = 1 */
  int32_t adjust_threads;  /* 1: operations may treat every thread that calls them as
                              wl_thread_adopt allows; 0: they may not */
  int32_t device_cores;    /* 0: the cpu executor. 1 to WL_MAX_DEVICE_CORES: kernels run in line, as
                              on silicon, on this number of cores per rank (blocks is ignored) */
  const int32_t* hosts;    /* host number of each rank, from 0, with no number left out, for
                              wl_group_share; NULL: all ranks live on one host */
} wl_group_config_t;

WL_API int32_t wl_group_create(const wl_group_config_t* config, wl_group_t** group,
                               wl_error_t* error);
/* Makes the handle of rank `rank`. Call once for each rank. */
WL_API int32_t wl_group_join(wl_group_t* group, int32_t rank, wl_comm_t** comm, wl_error_t* error);
/* Drops the creator's reference; joined handles keep the group alive. */
WL_API void wl_group_release(wl_group_t* group);

/* ---- processes of one host ----
 *
 * The ranks of a group may live in several processes. One process shares the group's memory, which
 * has no name. The other processes inherit it, receive it over a unix socket, or open it by the
 * process and the number that it has there. All attach to it, join their own ranks, and watch one
 * another. The callers exchange the names of the processes.
 *
 * No process writes another process's memory except in windows. If an operation names other memory,
 * each rank writes only its own output. */

typedef struct wl_process {
  uint32_t struct_size;
  int32_t pid;
  uint64_t started;       /* distinguishes it from a later process with the same pid */
  uint64_t pid_namespace; /* in which the pid is valid */
} wl_process_t;
/* Fills in the name of the calling process. */
WL_API int32_t wl_process_self(wl_process_t* process, wl_error_t* error);
/* Fills in the name of the process that has this pid now. WL_PEER_LOST: no process has it. */
WL_API int32_t wl_process_named(int32_t pid, wl_process_t* process, wl_error_t* error);

typedef enum wl_process_state {
  WL_PROCESS_UNKNOWN = 0, /* the process is on another host or in another pid namespace, or /proc
                             hides it */
  WL_PROCESS_RUNS = 1,
  WL_PROCESS_STOPPED = 2, /* stopped by a signal, such as SIGSTOP, or by a debugger */
  WL_PROCESS_ENDED = 3
} wl_process_state;
/* Returns the current wl_process_state. */
WL_API int32_t wl_process_look(const wl_process_t* process);

/* Makes the memory of a group: *file, which has no name and can neither shrink nor grow. Close it
 * after all processes have attached. Everything that decides how ranks move data is agreed there.
 * WL_RESOURCE says what was requested and what is free. WL_UNSUPPORTED: config->hosts names several
 * hosts, and the target or device_cores supports only one. */
WL_API int32_t wl_group_share(const wl_group_config_t* config, int32_t* file, wl_error_t* error);
/* Opens the *file that another process of this host shares and that has `number` there. *file is
 * this process's number. WL_PEER_LOST: the process has ended, or has begun to end. WL_UNSUPPORTED:
 * it is in another pid namespace, where numbers have another meaning. */
WL_API int32_t wl_file_open(const wl_process_t* owner, int32_t number, int32_t* file,
                            wl_error_t* error);
/* Distinguishes an open file of this process from a later file with the same number, here or in the
 * process that it was opened from. The value is equal in both processes. 0 if the file is not open.
 */
WL_API uint64_t wl_file_inode(int32_t file);
WL_API void wl_file_close(int32_t file);
/* Attaches to the group of such a file, for ranks of this process. The process maps the file until
 * the group and all handles of its ranks are gone. WL_INVALID_ARGUMENT: the file holds no group, or
 * a group of a library with another layout. */
WL_API int32_t wl_group_attach(int32_t file, wl_group_t** group, wl_error_t* error);

/* Watches `process`, in which `count` ranks live that have not closed. If it ends, or has ended
 * before, the communicator ends: every rank immediately gets WL_PEER_LOST, which names those ranks.
 * With silence_ns > 0, at least 5e8, the same happens if the process is silent for that time, for
 * example because it is stopped or its host is overloaded. The process must watch others itself.
 * WL_UNSUPPORTED: it is in another pid namespace. */
WL_API int32_t wl_group_watch(wl_group_t* group, const wl_process_t* process, const int32_t* ranks,
                              uint32_t count, int64_t silence_ns, wl_error_t* error);
/* Writes the failure record, for a failure that only the caller can see: `code` other than WL_OK,
 * the ranks at fault, and what happened. The first failure stands, and a later one changes nothing.
 * Any thread. */
WL_API int32_t wl_group_fail(wl_group_t* group, int32_t code, const int32_t* faulty_ranks,
                             uint32_t count, const char* message, wl_error_t* error);

/* ---- several hosts ----
 *
 * One process of each host shares a group's memory, with the same configuration except for cores.
 * The other processes of the host attach to it. Then each process opens its wire, which uses UCX,
 * and connects to the others before its ranks join. The callers exchange the names of the wires.
 *
 * WINDLASS_UCX_NET_DEVICES names the network; the default is loopback. Everyone who reaches that
 * network may write these processes' memory. */

/* Opens UCX through libwindlass-ucx.so, once per process. Uses the file at `path`. If `path` is
 * NULL, uses the file next to this library, or the one that the linker finds. Functions that open a
 * wire do this if it was not done before. WL_UNSUPPORTED says what to install. */
WL_API int32_t wl_ucx_find(const char* path, wl_error_t* error);
/* Reports UCX's version and the network devices of this host, such as "1.13.1: eth0 lo". *bytes is
 * the length, including the NUL. If `room` is too small, only *bytes is set. WL_UNSUPPORTED also if
 * no wire opens with the settings of this process. */
WL_API int32_t wl_ucx_describe(char* text, uint64_t room, uint64_t* bytes, wl_error_t* error);
/* Opens the wire of this process, in which `count` ranks live, all of one host. WL_UNSUPPORTED says
 * what to install. It also means more than 64 hosts, or no device here with the name in
 * WINDLASS_UCX_NET_DEVICES. WL_RESOURCE: no port of WINDLASS_UCX_PORT_RANGE is free. */
WL_API int32_t wl_group_open_wire(wl_group_t* group, const int32_t* ranks, uint32_t count,
                                  wl_error_t* error);
/* The name that other processes use to connect to this wire. *bytes is its length. If `room` is too
 * small, only *bytes is set. */
WL_API int32_t wl_group_wire_name(const wl_group_t* group, uint8_t* name, uint64_t room,
                                  uint64_t* bytes, wl_error_t* error);
/* Connects the wire. `names` holds the names of the wires of all processes of all hosts, one after
 * the other; bytes[i] is the length of name i. With silence_ns > 0, at least 5e8, a host that sends
 * nothing for that time is lost, with all its ranks. Before its first message, the limit is that
 * time or 10 s, whichever is longer. */
WL_API int32_t wl_group_connect(wl_group_t* group, const uint8_t* names, const uint64_t* bytes,
                                uint32_t count, int64_t silence_ns, wl_error_t* error);

/* ---- ranks ---- */

WL_API int32_t wl_comm_rank(const wl_comm_t* comm);
WL_API int32_t wl_comm_size(const wl_comm_t* comm);

/* Collective. Ranks with the same color get a new communicator, ordered by (key, rank), with its
 * own control block. A rank with a negative color takes part and gets *out = NULL. If comm fails
 * during the call, some ranks may get the new communicator and others the failure. Then the new one
 * is dead, with a WL_ABORTED that names one of the ranks without it. */
WL_API int32_t wl_comm_split(wl_comm_t* comm, int32_t color, int32_t key, int64_t deadline_ns,
                             wl_comm_t** out, wl_error_t* error);

/* Collective, with one list of `count` different ranks on every rank of comm, listed or not. The
 * listed ranks get a new communicator, ordered as listed, with its own control block. A rank that
 * is not listed gets *out = NULL. Lists of several calls may overlap. If comm fails during the
 * call, the new communicator ends as in wl_comm_split. */
WL_API int32_t wl_comm_subgroup(wl_comm_t* comm, const int32_t* ranks, uint32_t count,
                                int64_t deadline_ns, wl_comm_t** out, wl_error_t* error);

/* Makes a new communicator of the live ranks of a failed one that call this function. They keep
 * their order, and the new one has its own control block. comm may have failed in any way. It does
 * not change, and must still be closed.
 *
 * The ranks wait until all ranks that neither died nor closed have joined, or the deadline of the
 * first joined rank passes. Then one rank decides on the members. Ranks that have not joined by
 * then are left out: they get WL_ABORTED here and from every later call on comm, and reach nothing
 * of the new one. If meanwhile a rank dies, stops or cannot take part, the others decide again
 * without it. This may take some seconds beyond the deadline.
 *  - WL_INVALID_ARGUMENT: comm has not failed (wl_comm_abort ends it), or this rank is already in
 *    the new one.
 *  - WL_DEADLINE_EXCEEDED: no decision was reached. The function may be called again.
 *  - WL_RESOURCE: this process lacks resources for the new one. The others continue without it.
 *
 * On several hosts, if a rank dies or gives up during the agreement, some ranks may get a new
 * communicator that has already failed. They shrink that one again, while the others continue
 * without them. Hosts that are cut off from one another continue separately. */
WL_API int32_t wl_comm_shrink(wl_comm_t* comm, int64_t deadline_ns, wl_comm_t** out,
                              wl_error_t* error);

/* Writes the failure record: every rank inside a call, or at its next one, gets Aborted with
 * `reason`. Any thread. The first failure stands. A later abort changes nothing, except that it
 * ends this rank's wl_comm_shrink if one is in progress. */
WL_API int32_t wl_comm_abort(wl_comm_t* comm, const char* reason, wl_error_t* error);
/* Does the same as wl_group_fail, as one of the ranks. It blames the ranks that it names;
 * wl_comm_abort blames the caller. */
WL_API int32_t wl_comm_fail(wl_comm_t* comm, int32_t code, const int32_t* faulty_ranks,
                            uint32_t count, const char* message, wl_error_t* error);

/* The failure record. WL_OK while the communicator lives. Any thread. */
WL_API int32_t wl_comm_status(wl_comm_t* comm, wl_error_t* error);

typedef struct wl_rank_state {
  uint32_t struct_size;
  int32_t busy;      /* 1 while a thread is inside an operation of this rank */
  uint32_t sequence; /* sequence of that operation, or of the last one; during a one-sided
                        operation, of the last collective before it */
  int32_t operation; /* wl_operation */
  int32_t awaited;   /* rank it waits for, -1 none, -2 several; outside of operations, the first
                        rank that has not received its asynchronous sends */
  int32_t closed;
  uint32_t contested; /* times that a wait found another thread busy on the rank's core */
  int32_t item_owner; /* owner of the claimed item that it runs, the last claimed one of several;
                         -1 none, and then the next two are 0 */
  int32_t item_phase;
  int32_t item;
  int32_t joined;     /* 1 after it got a handle */
  int32_t lost;       /* 1 after another process has seen its end or has given up its host */
  int32_t former;     /* its rank in the communicator from which this one was split or shrunk: -1
                         none */
  int32_t pid;        /* pid of its process, if ranks live in several and it has joined; else 0 */
  uint64_t started;   /* this and the next one as in wl_process_t; 0 on another host */
  uint64_t pid_namespace;
  int32_t host;       /* number of its host, from 0, as in wl_group_config_t.hosts */
  int32_t elsewhere;  /* 1 after it has joined on another host, which reports the operations that it
                         enters */
} wl_rank_state_t;
/* Reads the state line of any rank, without a lock. Any thread. */
WL_API int32_t wl_comm_state(const wl_comm_t* comm, int32_t rank, wl_rank_state_t* state);

#define WL_RECORDS 64         /* operations recorded per rank */
#define WL_RECORD_TEXT 128    /* bytes of an operation's description */
#define WL_RECORD_INSIDE (-1) /* code of an operation in progress */
#define WL_RECORD_ENTERED (-2) /* code for a rank of another host: only known to have been entered.
                                  entered_ns is when this host learned of it; bytes is 0 */

/* One recorded operation. Times are those of wl_clock_ns, with an accuracy of about a microsecond.
 */
typedef struct wl_record {
  uint32_t struct_size;
  uint32_t sequence; /* for a one-sided operation, that of the last collective before it */
  int32_t operation; /* wl_operation */
  int32_t algorithm; /* wl_algorithm; WL_AUTO if the operation has only one */
  int32_t dtype;     /* this, op and root are arguments of the operation, otherwise 0 */
  int32_t op;
  int32_t root;       /* or the peer of a one-sided operation or a message; -1: any */
  int32_t code;       /* wl_code that the call returned, or WL_RECORD_INSIDE or _ENTERED */
  uint64_t count;     /* elements, bytes of a window, a signal's value, a transfer's version, or a
                         fingerprint */
  uint64_t bytes;     /* size of one part, as wl_floor_config_t counts it; if parts differ in size,
                         what this rank sends; for a transfer, what it writes to this rank */
  int64_t entered_ns; /* 0: not yet */
  int64_t left_ns;    /* 0 while inside. An operation that neither waited nor moved much lasts some
                         microseconds. Its end is not measured: then this is entered_ns */
  int64_t waited_ns;  /* in waits of more than some microseconds; 0 while inside */
  char text[WL_RECORD_TEXT]; /* "all-to-all(1024 x f32 to each rank, push)" */
} wl_record_t;
/* Reads the last operations of a rank, newest first, without a lock. Writes at most `capacity`
 * operations, of which the first may be in progress. records->struct_size is the size of each.
 * Returns the number written, or -1 for a wrong argument. Any thread. */
WL_API int32_t wl_comm_recorded(const wl_comm_t* comm, int32_t rank, wl_record_t* records,
                                int32_t capacity);
/* The last rank that entered operation `sequence`. For a rank of another host, the time is when
 * this host learned of it. -1 if no rank's record still has it. Any thread. */
WL_API int32_t wl_comm_last_to_enter(const wl_comm_t* comm, uint32_t sequence);

/* Sums over the recorded operations of one kind that this rank has ended since it got its handle.
 * Messages that were started and not waited for are not recorded. */
typedef struct wl_totals {
  uint32_t struct_size;
  uint32_t reserved;  /* 0 */
  uint64_t calls;     /* operations, failed ones included */
  uint64_t failures;  /* operations that returned another code than WL_OK */
  uint64_t bytes;     /* sum of wl_record_t.bytes */
  uint64_t waited_ns; /* sum of wl_record_t.waited_ns */
} wl_totals_t;
/* Reads the sums of a wl_operation, without a lock: the four may differ by the operation that ends
 * meanwhile. Any thread. */
WL_API int32_t wl_comm_totals(const wl_comm_t* comm, int32_t operation, wl_totals_t* totals);

typedef enum wl_peer_memory_form {
  WL_PEER_MEMORY_OPEN = 0,   /* ranks agree on the form when an operation first needs it */
  WL_PEER_MEMORY_SHARED = 1, /* all ranks live in this process */
  WL_PEER_MEMORY_READV = 2,  /* ranks use process_vm_readv. Short parts of collectives go through
                                staging buffers, unless a rank's setting is readv or a rank has no
                                memory for a staging buffer */
  WL_PEER_MEMORY_STAGE = 3,  /* its owner copies it to a staging buffer that all processes map */
  WL_PEER_MEMORY_REFUSED = 4 /* one rank's setting is readv, and one does not read the memory of all
                                others: WL_UNSUPPORTED */
} wl_peer_memory_form;
typedef struct wl_peer_memory {
  uint32_t struct_size;
  int32_t form;  /* wl_peer_memory_form */
  char why[256]; /* UTF-8, NUL-terminated */
} wl_peer_memory_t;
/* Reports how ranks in other processes reach memory outside windows, and why. This depends on the
 * setting WINDLASS_PEER_MEMORY (auto, readv or stage) and on what the kernel permits. If comm is
 * NULL, reports the form that this process chooses without regard to others. WL_INVALID_ARGUMENT:
 * the setting has another value. Any thread. */
WL_API int32_t wl_comm_peer_memory(const wl_comm_t* comm, wl_peer_memory_t* memory,
                                   wl_error_t* error);

/* ---- profiles ----
 *
 * Counts of what kernels did in this process, per kernel, on the targets a2a3sim and a5sim. Other
 * targets return WL_UNSUPPORTED. Cycles are estimates from rates in native/isa/checked; none was
 * measured on a device. A rank's run counts after it has left the operation, at the latest after
 * all ranks of this process have. Any thread. */

#define WL_ENGINES 4 /* engines of a core: scalar, vector, loads, stores */
typedef struct wl_kernel_profile {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  char kernel[80];   /* UTF-8, NUL-terminated; for a library's kernel: "launch of shift" */
  uint64_t runs;           /* runs of ranks: an operation of 4 ranks counts 4 */
  uint64_t cores;          /* cores that ran it; this and the following are sums over all runs */
  uint64_t cycles;         /* cycles of those cores, each until its last engine is done */
  uint64_t overlap_cycles; /* cycles in which a core's loads and its stores are both busy */
  uint64_t flags;          /* flags that were set */
  uint64_t barriers;
  uint64_t notifies;
  uint64_t buffer_bytes; /* on-core memory in use, up to the highest tile's end: the maximum of all
                            cores */
  uint64_t instructions[WL_ENGINES];
  uint64_t bytes[WL_ENGINES];
  uint64_t busy_cycles[WL_ENGINES];
} wl_kernel_profile_t;
/* Resets the counts. If traces is not 0, instructions are kept from now on, up to some 130,000. */
WL_API int32_t wl_profile_start(int32_t traces, wl_error_t* error);
/* Sets *count to the number of kernels that have run. Writes at most `capacity` of them, ordered by
 * name. kernels->struct_size is the size of each. */
WL_API int32_t wl_profile_kernels(wl_kernel_profile_t* kernels, uint32_t capacity, uint64_t* count,
                                  wl_error_t* error);
/* Sets *length to the size of the trace in bytes, and writes at most `capacity` bytes of it,
 * without a NUL. The trace is JSON for the viewers of Chrome and Perfetto. It has a process for
 * each rank and a thread for each engine of its cores, and shows a cycle as a microsecond.
 * Operations follow one another. Operations of a single rank, such as a put, are shown as rank 0's.
 */
WL_API int32_t wl_profile_trace(char* text, uint64_t capacity, uint64_t* length,
                                wl_error_t* error);

/* ---- reports from outside ----
 *
 * Reports on a group whose ranks live in several processes, for a process that has none of them.
 * The process only reads the group's memory, so that it never delays a rank. It trusts none of the
 * content. */

#define WL_REPORT_GROUPS 4096 /* groups of one process */

/* Lists the files of shared memory that `process`, of this host, has open: numbers[i], with *count
 * of them. A group's file is listed while the process has it open, and a window's while the window
 * is made. WL_PEER_LOST: the process has ended. WL_UNSUPPORTED: it is in another pid namespace.
 * WL_RESOURCE: this process may not read the list. */
WL_API int32_t wl_report_find(const wl_process_t* process, int32_t* numbers, uint32_t capacity,
                              uint64_t* count, wl_error_t* error);
/* Opens the group whose memory `owner` has open as `number`. It stays available until it is closed,
 * even after all of its processes have ended. WL_INVALID_ARGUMENT: the file is not a group, or a
 * group of another build. */
WL_API int32_t wl_report_open(const wl_process_t* owner, int32_t number, wl_report_t** report,
                              wl_error_t* error);

typedef struct wl_report_group {
  uint32_t struct_size;
  int32_t ranks;
  uint64_t id;     /* unique among the groups of this host */
  uint64_t parent; /* id of the group from which it was split or shrunk; 0: none */
  int64_t made_ns; /* time of creation, from wl_clock_ns */
} wl_report_group_t;
WL_API int32_t wl_report_about(const wl_report_t* report, wl_report_group_t* group);
/* The next four correspond to wl_comm_state, wl_comm_recorded, wl_comm_peer_memory and
 * wl_comm_status. */
WL_API int32_t wl_report_state(const wl_report_t* report, int32_t rank, wl_rank_state_t* state);
WL_API int32_t wl_report_recorded(const wl_report_t* report, int32_t rank, wl_record_t* records,
                                  int32_t capacity);
WL_API int32_t wl_report_peer_memory(const wl_report_t* report, wl_peer_memory_t* memory,
                                     wl_error_t* error);
WL_API int32_t wl_report_failure(const wl_report_t* report, wl_error_t* error);
WL_API void wl_report_close(wl_report_t* report);

/* Returns 1 if no rank of this communicator can still access memory named in a failed operation: no
 * operation has failed, or no rank is inside a call. Any thread. */
WL_API int32_t wl_comm_quiescent(const wl_comm_t* comm);

/* Ends this rank's call in flight with WL_CLOSED, waits until that call has left, and marks the
 * rank as gone. A peer that waits for it later gets a WL_ABORTED that names it. Idempotent. Any
 * thread. The handle stays valid until wl_comm_free, and every operation on it returns WL_CLOSED.
 * Each rank ends its threads. The last rank of a process to leave releases, within 5 s, everything
 * that the devices of its ranks hold there, except windows that callers have.
 *
 * WL_MISMATCH: the rank has left, and ranks disagreed in an operation that returned WL_OK here,
 * which no call of this rank has reported. The rank compares its last operation with the operations
 * of all peers that have entered it or have left. Therefore, if ranks disagreed, the last rank to
 * leave gets it unless another rank did before.
 *
 * WL_DEADLINE_EXCEEDED: the call in flight is still running. */
WL_API int32_t wl_comm_close(wl_comm_t* comm, wl_error_t* error);
/* Closes, then frees the handle. No other thread may use it any more. */
WL_API void wl_comm_free(wl_comm_t* comm);

/* ---- memory ---- */

/* Allocates zeroed memory, aligned to 64 bytes or to `alignment` if larger (a power of two). bytes
 * = 0 gives a valid pointer. WL_RESOURCE: a large request exceeds the free memory. */
WL_API int32_t wl_memory_alloc(uint64_t bytes, uint64_t alignment, void** memory,
                               wl_error_t* error);
WL_API void wl_memory_free(void* memory);
/* Number of bytes that this process may still allocate, limited by the machine and by its cgroups.
 * UINT64_MAX if no limit is known. Takes some 50 us. */
WL_API uint64_t wl_memory_available(void);

/* Collective. Makes a window of `bytes`, the same on every rank, zeroed and aligned to 4096. */
WL_API int32_t wl_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                wl_window_t** window, wl_error_t* error);
/* Collective. Makes a window in the memory of devices, with a part on each rank's device. Its
 * addresses are device addresses, the same for all devices of a process's ranks, and the host
 * cannot use them. Collectives accept this memory like any device memory. wl_put, wl_get and
 * wl_accumulate move between it and `local` on the host or on a device. Signals must be in windows
 * of the host.
 * WL_UNSUPPORTED: the target has no devices on which callers have tensors, the devices do not reach
 * one another, or their memory cannot be shared with the processes of the ranks. */
WL_API int32_t wl_device_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                       wl_window_t** window, wl_error_t* error);
/* NULL if `rank` is out of range. */
WL_API void* wl_window_address(const wl_window_t* window, int32_t rank);
WL_API uint64_t wl_window_bytes(const wl_window_t* window);
/* Drops this rank's reference and frees the handle. The memory is released when every rank has
 * dropped its reference and no rank of the communicator can still access it. */
WL_API void wl_window_free(wl_window_t* window);

/* ---- memory pools ----
 *
 * Memory that peers map. Each rank allocates pieces of any size from it at any time, without the
 * other ranks. Operations move the pieces like memory in windows. A move between this rank's memory
 * and a peer's part of a window accepts pieces as this rank's memory. In each process, a pool
 * reserves address space for `bytes` of every rank. It uses memory only for pages that contain
 * pieces. */

/* Collective. Makes a pool of `bytes` per rank, 1 or more and the same on every rank, in whole
 * pages. */
WL_API int32_t wl_memory_pool_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                     wl_memory_pool_t** pool, wl_error_t* error);
/* Allocates `bytes` on this rank at *memory, zeroed and aligned to 64. bytes = 0 gives a valid
 * pointer. Any thread. WL_RESOURCE says what was requested and what is free, in the pool or on this
 * machine; then nothing has changed. After the communicator has failed, returns its failure: a
 * process that was considered dead may still write to its old addresses, so the pool allocates
 * nothing. */
WL_API int32_t wl_memory_pool_alloc(wl_memory_pool_t* pool, uint64_t bytes, void** memory,
                                    wl_error_t* error);
/* Frees a piece of wl_memory_pool_alloc, and returns pages without other pieces to the system.
 * After an error, the memory stays until wl_comm_quiescent. Any thread. WL_INVALID_ARGUMENT: no
 * allocated piece begins there. */
WL_API int32_t wl_memory_pool_release(wl_memory_pool_t* pool, void* memory, wl_error_t* error);
/* Number of bytes that this rank has allocated, each piece rounded up to 64. Any thread. */
WL_API uint64_t wl_memory_pool_used(const wl_memory_pool_t* pool);
/* Same as wl_window_free, including the allocated pieces. */
WL_API void wl_memory_pool_free(wl_memory_pool_t* pool);

/* ---- files ---- */

/* Makes a new file of exactly `bytes` bytes with its blocks reserved. WL_RESOURCE if the disk is
 * full; then no file is left. */
WL_API int32_t wl_file_create(const char* path, uint64_t bytes, wl_error_t* error);
/* Maps a regular file of exactly `bytes` bytes, not zero. WL_INVALID_ARGUMENT names both sizes if
 * the file has another size. The mapping is readable and writable, and writes stay private to it.
 */
WL_API int32_t wl_file_map(const char* path, uint64_t bytes, void** address, wl_error_t* error);
WL_API int32_t wl_file_unmap(void* address, uint64_t bytes, wl_error_t* error);
/* Exchanges both names atomically. WL_UNSUPPORTED if the file system cannot do this. */
WL_API int32_t wl_file_exchange(const char* a, const char* b, wl_error_t* error);
/* Reads at most `room` bytes of a regular file into `bytes`, and sets *size to the number read.
 * WL_RESOURCE if users other than the owner have access to the file. The check is on the opened
 * file, even if the name changes meanwhile. WL_INVALID_ARGUMENT if `path` names no regular file. */
WL_API int32_t wl_file_read_private(const char* path, void* bytes, uint64_t room, uint64_t* size,
                                    wl_error_t* error);
/* Renames. WL_INVALID_ARGUMENT if `to` exists. Atomic if the file system can refuse to replace a
 * file, otherwise checks first. */
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

/* dst = src, cast to dst's dtype with one correctly rounded step. The shapes are equal, and the
 * tensors share no byte. */
WL_API int32_t wl_tensor_copy(const wl_tensor_t* dst, const wl_tensor_t* src, wl_error_t* error);
/* Returns 1 if an element of `a` and an element of `b` share a byte, otherwise 0. Also returns 1 if
 * a long search gives no result. This may happen for views that are not cut from one tensor. */
WL_API int32_t wl_tensors_overlap(const wl_tensor_t* a, const wl_tensor_t* b);
/* Sets every element to the bytes at `element` (one element of dst's dtype). */
WL_API int32_t wl_tensor_fill(const wl_tensor_t* dst, const void* element, wl_error_t* error);
/* dst = fold of `count` sources in order, in the canonical order and accumulator; dst and sources
 * share shape and dtype. */
WL_API int32_t wl_tensor_fold(const wl_tensor_t* dst, const wl_tensor_t* const* sources,
                              uint32_t count, int32_t op, wl_error_t* error);
/* *hash = XXH64 with `seed` of the elements in row-major order, as consecutive values of `dtype`.
 * The elements are those of the fold of `count` sources of one shape and dtype, rounded to dtype
 * `wire` and then to `dtype`. A single source is not folded. Elements that already have this layout
 * are read in place. */
WL_API int32_t wl_tensor_hash(const wl_tensor_t* const* sources, uint32_t count, int32_t op,
                              int32_t wire, int32_t dtype, uint64_t seed, uint64_t* hash,
                              wl_error_t* error);
WL_API int32_t wl_dtype_size(int32_t dtype);                   /* bytes; 0 if unknown */
WL_API int32_t wl_dtype_can_cast(int32_t from, int32_t to);    /* 1 or 0 */
WL_API int32_t wl_dtype_can_reduce(int32_t dtype, int32_t op); /* 1 or 0 */

/* ---- collectives ---- */

/* One collective as its caller states it. Only the fields that its operation uses are read. */
typedef struct wl_call {
  uint32_t struct_size;
  int32_t operation; /* wl_operation */
  const void* in;
  uint64_t in_elements;
  void* out;
  uint64_t out_elements;
  int32_t dtype;     /* wl_dtype */
  int32_t op;        /* wl_reduce_op */
  int32_t algorithm; /* wl_algorithm */
  int32_t root;
  int64_t rows;
  const int64_t* in_counts;  /* one per rank, as are the next four */
  const int64_t* in_offsets;
  const int64_t* out_counts;
  const int64_t* out_offsets;
  int64_t* received_counts;
  int64_t deadline_ns; /* 0: the communicator's own */
  uint64_t* ticket;  /* NULL: the call returns after the operation. Otherwise it is enqueued */
  uint64_t stream;   /* stream on which it is enqueued */
  double factor;     /* of WL_PREMULTIPLIED_SUM; each rank has its own */
} wl_call_t;

/* Runs a collective. Buffers are contiguous and aligned to their dtype. They stay valid until the
 * call returns, or after an error until wl_comm_quiescent. Lists are read before the call returns.
 *
 * WL_OP_BARRIER returns after every rank has called it. The operations of equal parts are:
 *
 *   WL_OP_ALL_TO_ALL      part s of out on rank r = part r of in on rank s. With WL_PUSH or
 *                         WL_PULL. Never in place
 *   WL_OP_BROADCAST       out on every rank = in on the root. With WL_STAGED
 *   WL_OP_ALL_GATHER      part s of out on every rank = in of rank s
 *   WL_OP_REDUCE_SCATTER  out of rank r = part r of the reduction of all ranks' in
 *   WL_OP_ALL_REDUCE      out on every rank = the reduction of all ranks' in. With WL_ONE_PHASE,
 *                         WL_TWO_PHASE, WL_RING or WL_BIDIRECTIONAL_RING
 *   WL_OP_SCATTER         out of rank r = part r of in on the root
 *   WL_OP_GATHER          part s of out on the root = in of rank s
 *   WL_OP_REDUCE          out on the root = the reduction of all ranks' in
 *   WL_OP_SCAN            out of rank r = the reduction of in of ranks 0 to r. Never in place. Not
 *                         WL_AVG, here and in the next one
 *   WL_OP_EXCLUSIVE_SCAN  out of rank r = the reduction of in of ranks 0 to r - 1. Never in place.
 *                         On rank 0 it is the identity of the reduction: 0 for sums, WL_OR and
 *                         WL_XOR; 1 for products; all bits set for WL_AND; for WL_MAX and WL_MIN,
 *                         the smallest and the largest value of the dtype, which are the infinities
 *                         if the dtype has them
 *   WL_OP_ALL_GATHER_DIM  out on every rank = the matrices of all ranks side by side: an all-gather
 *                         along dimension 1. A part is a matrix of `rows` rows, the same on every
 *                         rank, and out has as many. Never in place
 *   WL_OP_REDUCE_SCATTER_DIM  out of rank r = columns r of the reduction of all ranks' in: a
 *                         reduce-scatter along dimension 1. A part is a matrix of `rows` rows, the
 *                         same on every rank. in has as many rows, and its columns are divided
 *                         among the ranks. Never in place
 *
 * A buffer holds one part, or one part per rank in order. Its element count determines the length
 * of a part, which is the same on every rank. A buffer that only the root reads or writes is
 * ignored on other ranks. WL_AUTO is valid for every collective, and is the only algorithm of a
 * collective without a choice.
 *
 * In place: if in and out are one part each, they are the same buffer. If only one of them is one
 * part, it is the rank's own part of the other. One-phase all-reduce is in place only for small
 * buffers. Buffers do not overlap otherwise.
 *
 * Reductions have the canonical order: left fold in ascending rank, with f32 for f16 bf16 f8, and
 * one rounding. Rings differ: they are deterministic for a rank count and a count.
 * WL_PREMULTIPLIED_SUM rounds each factor to the type of the accumulator, f32 or f64, then each
 * product and each sum.
 *
 * In the operations of unequal parts, counts and offsets are elements, and a part is inside its
 * buffer. If offsets is NULL, the parts are contiguous, in ascending rank. Messages name the lists
 * as Java does: in_counts is sendCounts, out_counts is receiveCounts, and the only list of an
 * operation is counts.
 *
 *   WL_OP_ALL_TO_ALL_V    part d of in goes to rank d, and part s of out comes from rank s. The
 *                         count that a rank sends to a peer equals the count that the peer receives
 *                         from it. Otherwise WL_MISMATCH, before data from that rank reaches the
 *                         peer's out. The parts of out do not overlap one another, and in and out
 *                         do not overlap.
 *                         With received_counts, receivers do not know the counts: out_counts and
 *                         out_offsets are ignored, and the call is not enqueued. The received parts
 *                         are contiguous in out, in ascending rank, and received_counts gets the
 *                         number of elements from each rank. If any rank's out is too small, every
 *                         rank gets a WL_INVALID_ARGUMENT that names it and the size that it needs.
 *                         Then nothing has moved, and the communicator stays usable
 *   WL_OP_ALL_GATHER_V    out of every rank = the inputs of all ranks, in order. out_counts is the
 *                         same on every rank: in holds out_counts[rank] elements, and out holds
 *                         their sum. In place: in is the rank's own part of out
 *   WL_OP_REDUCE_SCATTER_V  out of rank r = part r of the reduction of all inputs, in the canonical
 *                         order. in_counts is the same on every rank: in holds their sum, and out
 *                         holds in_counts[rank] elements. In place: out is the rank's own part of
 *                         in
 *
 * Operations that are made of steps are WL_OP_REGISTER, WL_OP_LINK to WL_OP_CHECK_REPLICAS, and
 * WL_OP_EXPERTS_OPEN to WL_OP_STORE_TO_HOST. A step is an all-gather under that name, of unequal
 * parts if out_counts is not NULL. It is not enqueued. Ranks in steps of other operations, or in
 * any other call, get WL_MISMATCH before an element moves.
 *
 * On the target cuda, an operation may be enqueued on `stream`, a CUstream of the rank's GPU in its
 * primary context. 0 and 1 are the legacy default stream. Buffers are in GPU memory. *ticket
 * identifies the operation for wl_enqueued_await. The call waits for the other ranks on the host,
 * within its deadline, and returns after all of them have enqueued it. The GPUs begin it after all
 * ranks' streams have reached it. Later work on a rank's stream begins after the rank's part is
 * complete. The deadline starts again when the rank's stream has reached the operation.
 *
 * If the streams of all ranks capture one graph, the operation becomes part of the graph, and
 * *ticket is 0. The graph may be launched any number of times, in order with everything else that
 * the ranks enqueue, until the communicator closes. WL_UNSUPPORTED: only some streams capture,
 * there are two graphs, or a graph is captured while ranks live in several processes.
 * WL_UNSUPPORTED, and WL_RESOURCE for more captured operations than a communicator holds, leave the
 * communicator unchanged. All ranks get them. */
WL_API int32_t wl_submit(wl_comm_t* comm, const wl_call_t* call, wl_error_t* error);
/* Waits until an enqueued operation is complete, at most limit_ns. Sets *over to 1 if it is
 * complete, otherwise to 0. If the communicator has failed, returns the failure, which ends the
 * operation. Any thread. */
WL_API int32_t wl_enqueued_await(wl_comm_t* comm, uint64_t ticket, int64_t limit_ns, int32_t* over,
                                 wl_error_t* error);

/* ---- kernels of libraries ---- */
/* A library of kernels is a file for one target, built with CMake's windlass_add_kernel. It exports
 * a table of its kernels and their arguments; see windlass/kernel_table.h. */

typedef struct wl_kernel_library wl_kernel_library_t;

/* Loads the library at `path` for the target `target`. Its code and *library live as long as the
 * process, and the same file gives the same *library again. The file, its machine and its table are
 * checked first. WL_INVALID_ARGUMENT: the file is not a kernel library, or is incomplete.
 * WL_UNSUPPORTED: it is for another target, machine or Windlass version. */
WL_API int32_t wl_kernel_library_load(const char* path, const char* target,
                                      wl_kernel_library_t** library, wl_error_t* error);
WL_API int32_t wl_kernel_count(const wl_kernel_library_t* library);
/* Name and signature of kernel number `kernel`, from 0. Example of a signature: "shift(f32 in,
 * written f32 out)". NULL: there is no such kernel. */
WL_API const char* wl_kernel_name(const wl_kernel_library_t* library, int32_t kernel);
WL_API const char* wl_kernel_signature(const wl_kernel_library_t* library, int32_t kernel);

typedef enum wl_argument_kind { WL_ARGUMENT_TENSOR = 0, WL_ARGUMENT_SCALAR = 1 } wl_argument_kind;

/* Collective. Runs the kernel, with the same dtypes, shapes and scalars on every rank. If these or
 * the kernel differ, ranks get WL_MISMATCH before one accesses memory of a rank that disagrees. A
 * distributed argument is in one window of comm, at the same offset on every rank.
 *
 * arguments: for each argument in order, as 64-bit words: its kind (a wl_argument_kind) and its
 * dtype. For a scalar, its bits follow. For a tensor: address, the wl_window_t* that contains it or
 * 0, 1 if it may not be written or 0, ndim, shape[ndim], strides[ndim]. Tensors are contiguous.
 *
 * The waits of a kernel end with the deadline, an abort or the loss of a peer, like all waits.
 * Nothing ends a kernel that never leaves a phase: it blocks its rank. WL_UNSUPPORTED: ranks live
 * on several hosts. */
WL_API int32_t wl_launch(wl_comm_t* comm, const wl_kernel_library_t* library, int32_t kernel,
                         const int64_t* arguments, uint64_t words, int64_t deadline_ns,
                         wl_error_t* error);

/* ---- expert parallelism ---- */

/* Configuration of expert parallelism, the same on all ranks of a communicator. Rank r has experts
 * / ranks of the experts, starting at r * experts / ranks. */
typedef struct wl_experts {
  uint32_t struct_size;
  int32_t dtype;      /* dtype of tokens: f64 f32 f16 bf16 f8e5m2 f8e4m3 */
  uint32_t ranks;     /* number of the communicator's ranks */
  uint32_t experts;   /* a multiple of ranks */
  uint32_t top_k;     /* most experts of a token: 1 to WL_MAX_TOP_K */
  uint32_t alignment; /* an expert's rows begin at a multiple of this number */
  uint32_t quantised; /* 1: tokens of f32, f16 or bf16 are sent as f8e4m3, with an f32 scale for
                         each 128 elements of a row: s = max(largest magnitude, 1e-4) / 448 and q =
                         element * (1 / s), to nearest even */
  uint32_t reserved;
  uint64_t hidden;    /* elements of a token */
  uint64_t tokens;    /* most tokens that a rank brings */
  uint64_t rows;      /* rows that a rank has room for */
} wl_experts_t;
#define WL_MAX_TOP_K 64

/* Layout of a rank's table and buffer. The table records where the rank's tokens go. It has two i32
 * arrays with an entry per expert of the rank: the expert's first row (at starts_at), and its
 * number of rows (at gets_at).
 *
 * The buffer holds the rows at offset 0, then scales (f32, ceil(hidden / 128) per row, if
 * quantised), then records. A record is {i32 rank, i32 token, i32 slot, f32 weight}. rank -1: the
 * row is unused, between the rows of two experts. */
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

/* Records in this rank's table where `count` tokens go, and sends nothing.
 *
 * table: of the layout's size, in a window of comm. number: of the table among the tables of comm,
 * the same on all ranks, which compare it. ids: [count, top_k], of WL_I32 or WL_I64: an expert, or
 * -1 for none, each expert at most once per token. weights: [count, top_k] of f32, or NULL for 1.
 */
WL_API int32_t wl_experts_route(const wl_comm_t* comm, const wl_experts_t* experts, void* table,
                                uint32_t number, uint64_t count, const void* ids,
                                int32_t ids_dtype, const float* weights, wl_error_t* error);
/* Collective. Puts the tokens that the table has recorded, one row each, into the buffers of the
 * ranks that have their experts. Rows are ordered by expert, then rank, then token, and each row
 * gets a record. Each token is read once and quantised once. If no rank changes its table, a
 * further call sends tokens to the same rows again.
 *
 * buffer: of the layout's size, in a window of comm. tokens: [count, hidden]; they share no byte.
 *
 * WL_INVALID_ARGUMENT on all ranks, with nothing moved: the experts of a rank get more rows than it
 * has room for. */
WL_API int32_t wl_experts_dispatch(wl_comm_t* comm, void* table, void* buffer, const void* tokens,
                                   uint64_t count, int64_t deadline_ns, wl_error_t* error);
/* Collective. Computes token t of `out`, [count, hidden], with the count of the dispatch. It is the
 * sum over the token's experts, in the order of its ids, of the weight times the expert's row. The
 * row is where the dispatch put the token, in `outputs`. The sum is in f32, or f64 for f64; each
 * step is rounded, and the result is rounded once to `dtype`. A token without experts is zeros.
 *
 * outputs: [rows, hidden] of `dtype`, in a window of comm. It may be the buffer's own rows. */
WL_API int32_t wl_experts_combine(wl_comm_t* comm, void* table, const void* outputs, int32_t dtype,
                                  void* out, uint64_t count, int64_t deadline_ns,
                                  wl_error_t* error);

/* ---- messages ---- */
/* Two ranks call a message: one sends it, and the other receives it. A receive takes the first
 * message of its source that it matches, by the tag. Messages between two ranks with one tag keep
 * their order. Ranks need not call messages and other operations in the same order.
 *
 * A short message travels at once, and its send does not wait. So does one of up to 4,096 bytes
 * while the rank has a free block for a copy. A longer one may wait for its receive, which reads it
 * from the sender's buffer. Memory for messages without a receive is bounded. At the bound, a send
 * waits.
 *
 * Failures end the communicator, like those of collectives, and name both ranks and the tag:
 * WL_MISMATCH: the dtypes differ, or the message is longer than its receive. WL_DEADLINE_EXCEEDED:
 * the other rank did not take part in time. WL_ABORTED: the other rank has closed. WL_UNSUPPORTED
 * ends nothing: the target has no messages. */

#define WL_ANY (-1) /* any source, or any tag */

typedef struct wl_message {
  uint32_t struct_size;
  int32_t operation; /* WL_OP_SEND or WL_OP_RECEIVE */
  int32_t peer;      /* a rank, also the caller's own; for a receive also WL_ANY */
  int32_t tag;       /* 0 or more; for a receive also WL_ANY */
  int32_t dtype;     /* wl_dtype */
  int32_t source;    /* result of a receive: the rank that sent the message */
  int32_t found_tag; /* result of a receive: the tag of the message */
  int32_t reserved;
  void* data;        /* contiguous elements in the host's memory */
  uint64_t elements; /* of a send; for a receive, the room */
  uint64_t received; /* result of a receive: elements of the message */
} wl_message_t;

/* Runs the messages together, and returns when all are complete: buffers of sends may be changed,
 * and those of receives are filled. Sends and receives may be in any order. Those with one peer
 * match in the order of the array. Buffers of receives overlap no other buffer of the call. */
WL_API int32_t wl_messages(wl_comm_t* comm, wl_message_t* messages, uint32_t count,
                           int64_t deadline_ns, wl_error_t* error);
/* Begins messages and returns at once. *ticket is their number, or 0 if they are over already. The
 * array and the buffers stay valid until they are over. Any thread, also while the rank is inside
 * an operation. The deadline counts from this call. */
WL_API int32_t wl_messages_start(wl_comm_t* comm, wl_message_t* messages, uint32_t count,
                                 int64_t deadline_ns, uint64_t* ticket, wl_error_t* error);
/* Moves messages until some that wl_messages_start began are over, or limit_ns has passed. *ticket
 * is their number, or 0. Call it from one thread, again and again, while any are in progress. An
 * error ends all of them. Their buffers stay until wl_comm_quiescent returns 1. */
WL_API int32_t wl_messages_next(wl_comm_t* comm, int64_t limit_ns, uint64_t* ticket,
                                wl_error_t* error);
/* Withdraws messages that wl_messages_start began, if no other rank may have seen one of them. Sets
 * *withdrawn to 1 if it did, and wl_messages_next does not return them then; to 2 if they are over;
 * else to 0. Any thread. */
WL_API int32_t wl_messages_withdraw(wl_comm_t* comm, uint64_t ticket, int32_t* withdrawn,
                                    wl_error_t* error);

/* ---- one-sided operations ---- */
/* Only one rank calls a one-sided operation. A window's memory stays until no rank holds it: data
 * sent to a peer that has freed its handle is never read. WL_ABORTED: the peer, which the message
 * names, has closed the communicator. */

/* remote = local, in `peer`'s part of the window. `peer` may be the rank itself. Both tensors have
 * one dtype and one shape, are aligned to the dtype, and share no byte. remote->data is symmetric:
 * an address in this rank's own part of the window, which stands for the same offset in the peer's
 * part.
 * On return `local` may be changed. The peer sees the data after it has waited for a later notify.
 * WL_DEADLINE_EXCEEDED: the peer is on another host, which has not received the data within the
 * communicator's deadline. */
WL_API int32_t wl_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* remote += local, element by element, with the arithmetic of a sum of two in a reduction. No add
 * is lost, whichever ranks add to the same elements at the same time. The order of the adds is not
 * defined, so the rounding of floats is not either. Plain stores, put included, are not ordered
 * with adds to the same elements: separate them with signals or a barrier. Supports f32, f16, bf16,
 * i32, i16 and i8; otherwise WL_UNSUPPORTED. Everything else is as in wl_put. */
WL_API int32_t wl_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* local = remote. On return `local` is complete. WL_DEADLINE_EXCEEDED as in wl_put. */
WL_API int32_t wl_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* One-sided operations that the rank's device runs. `local` is in a device's memory, and the window
 * is on devices or in the host's memory. Data to and from the host goes through pinned memory. On
 * return the move is complete.
 *
 * WL_UNSUPPORTED leaves the communicator unchanged:
 *  - The target has no devices on which callers have tensors.
 *  - No device has the memory.
 *  - A tensor outside windows, on a device other than the rank's, is added to device memory.
 *  - Such a tensor moves between devices, and the tensor or the other side is strided.
 *
 * WL_DEVICE ends the communicator. */
WL_API int32_t wl_device_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_accumulate(wl_comm_t* comm, const wl_window_t* window,
                                    const wl_tensor_t* local, int32_t peer,
                                    const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
/* Operations of the rank's device on a caller's tensor in the memory of the rank's own device or
 * another one. wl_device_clear sets every bit of its elements to 0. wl_device_hash sets *hash to
 * wl_tensor_hash of this one tensor, in its own dtype; the elements pass through pinned memory
 * piece by piece. Only this rank takes part, as in a wl_put or wl_get to itself. Errors as in
 * wl_device_put. */
WL_API int32_t wl_device_clear(wl_comm_t* comm, const wl_tensor_t* tensor, wl_error_t* error);
WL_API int32_t wl_device_hash(wl_comm_t* comm, const wl_tensor_t* tensor, uint64_t seed,
                              uint64_t* hash, wl_error_t* error);

/* A signal is `size` lines of a window, one for each rank. Line r of a rank's own part holds the
 * count that only rank r sets there. It starts at 0 and moves forward, by less than 2^30 at a time.
 * It is never 2^30 ahead of the value that its reader has waited for. The line holds its low 32
 * bits; the functions take the whole count. */
#define WL_SIGNAL_LINE_BYTES 64

/* Sets this rank's line of the peer's signal to `value`, with release semantics. A rank that waits
 * for the value sees every put, and every other store, that this rank made before. `signal` is the
 * offset of the signal's first line, a multiple of WL_SIGNAL_LINE_BYTES. */
WL_API int32_t wl_notify(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                         uint64_t value, wl_error_t* error);
/* Blocks until `peer`'s line of this rank's signal has reached `value`. WL_DEADLINE_EXCEEDED names
 * the peer. */
WL_API int32_t wl_wait(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                       uint64_t value, int64_t deadline_ns, wl_error_t* error);
/* Sets *reached to 1 if wl_wait would return at once, otherwise to 0. */
WL_API int32_t wl_test(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                       uint64_t value, int32_t* reached, wl_error_t* error);

/* ---- transfers: a plan bound to memory ---- */

/* A plan is passed to the native library as 64-bit words, so that Java writes it without structs.
 *
 * bindings: for each local view, in order: dtype, ndim, address, low, bytes, shape[ndim],
 * strides[ndim]. `low` and `bytes` are the start and size of the view's allocation. Every element
 * must be inside.
 *
 * stages: for each box that this rank copies to a staging buffer, in order: phase, dtype, ndim,
 * offset, readers, shape[ndim], then the ranks that read it. The transfer owns two staging buffers,
 * for even and for odd phases, as long as the boxes need. A box is dense at `offset` bytes in one
 * of them. It is written in its phase and read in the next one. After that, another box may use its
 * memory.
 *
 * chunks: for each chunk that this rank writes, in order: phase, target_binding, wire_dtype, op,
 * ndim, sources, length[ndim], target_start[ndim], then for each source: rank, binding,
 * start[ndim]. `op` is a wl_reduce_op, used if sources > 1. Starts are in the coordinates of the
 * binding's shape. A source binding is an index into that rank's source bindings. Target binding
 * -1 - n is box n of this rank's stages. Source binding -1 - n is box n of the boxes of `rank` that
 * this rank reads. A chunk that reads a box runs in the phase after the box's phase. Any other
 * chunk runs in `phase`. Every rank ends a phase before any rank begins the next. If chunks of
 * several targets read the same sources, these are read once for all of them. */
typedef struct wl_transfer_config {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t fingerprint; /* hash of (layouts, shapes, dtypes, names); must agree on every rank */
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

/* Collective. Exchanges bindings, checks every chunk against the bindings at both ends, and
 * allocates the staging buffers. */
WL_API int32_t wl_transfer_create(wl_comm_t* comm, const wl_transfer_config_t* config,
                                  int64_t deadline_ns, wl_transfer_t** transfer, wl_error_t* error);
/* Collective. Runs every chunk once. `version` must agree. */
WL_API int32_t wl_transfer_run(wl_transfer_t* transfer, uint64_t version, int64_t deadline_ns,
                               wl_error_t* error);
/* Values of wl_transfer_move in addition to versions, which are 0 or more. */
#define WL_ANY_VERSION (-1) /* the version that others name */
#define WL_NO_VERSION (-2)  /* the rank takes no part, reports this to its peers, and then aborts */
#define WL_FINISHED (-3)    /* no version follows; the rank may name any transfer */
/* Collective. Runs the transfer if all ranks name the same `number` and version. `number`
 * identifies the transfer on all ranks. *version is the version that this rank names. On return it
 * is the version that all ranks name, or WL_ANY_VERSION if they do not or not all have arrived;
 * then nothing has moved. If all have arrived and a rank names WL_FINISHED, all ranks get WL_OK
 * and WL_FINISHED, and nothing has moved.
 * Ranks that name different transfers or versions get WL_MISMATCH, and the communicator stays
 * usable. All ranks get WL_UNSUPPORTED, with the same effect, if a rank's setting requires reads of
 * memory outside windows, and a rank does not read it. Peers of a rank that takes no part get its
 * abort. */
WL_API int32_t wl_transfer_move(wl_transfer_t* transfer, uint64_t number, int64_t* version,
                                int64_t deadline_ns, wl_error_t* error);
/* Number of calls of wl_transfer_move in which all ranks had arrived, so that data moved or may
 * have moved. Any thread. */
WL_API uint64_t wl_transfer_begun(const wl_transfer_t* transfer);
/* moved[i] = bytes written to target binding i, for the first `count` bindings, in the run in
 * progress or the last one. They are bytes of `rank`, which is in this process, or of all ranks of
 * this process if it is -1. When all bytes of a binding are written, its memory holds the sent
 * data, even if the run fails. Any thread. */
WL_API int32_t wl_transfer_progress(const wl_transfer_t* transfer, int32_t rank, uint64_t* moved,
                                    uint32_t count, wl_error_t* error);
/* Sets *hash to wl_tensor_hash of one box of source binding `binding` on each of `count` ranks. The
 * boxes have `length` at `start`, with one value per dimension of the binding. The ranks keep their
 * sources unchanged.
 * Only this rank calls it, but it is an operation: until it returns, the communicator is not
 * quiescent. So a rank that fails meanwhile knows how long to keep its sources. After a failure it
 * reads nothing. WL_UNSUPPORTED: a source is in another process, outside every window. */
WL_API int32_t wl_transfer_hash(wl_transfer_t* transfer, uint32_t binding, const int32_t* ranks,
                                uint32_t count, const int64_t* start, const int64_t* length,
                                int32_t op, int32_t wire, int32_t dtype, uint64_t seed,
                                uint64_t* hash, wl_error_t* error);
/* Size of this rank's staging buffers in bytes. Any thread. */
WL_API uint64_t wl_transfer_staging_bytes(const wl_transfer_t* transfer);
WL_API void wl_transfer_free(wl_transfer_t* transfer);

/* ---- the floor ---- */

/* Measures pinned threads, one per core, that move exactly the bytes that an operation must move.
 * The work is split in advance, inputs are rewritten before each iteration, and there is no entry
 * or exit protocol. Every input is read once and every output is written once. Reductions are f32
 * sums. */
typedef struct wl_floor_config {
  uint32_t struct_size;
  int32_t operation; /* WL_OP_ALL_TO_ALL, _BROADCAST (in place), _ALL_GATHER, _REDUCE_SCATTER or
                        _ALL_REDUCE */
  int32_t ranks;
  int32_t iterations;
  uint64_t bytes; /* all-to-all: from one rank to one peer; broadcast and all-reduce: the buffer;
                     all-gather: what one rank contributes; reduce-scatter: what one rank receives.
                     Reductions require a multiple of 4. */
} wl_floor_config_t;
WL_API int32_t wl_floor_measure(const wl_floor_config_t* config, double* median_us,
                                wl_error_t* error);
/* Measures the sum of a dispatch and a combine. Every token is read once and written to each of its
 * rows with streaming stores. Each row is read once, weighted and added up. `ids` are those of all
 * ranks, [ranks, tokens, top_k]. Tokens are not quantised. */
WL_API int32_t wl_floor_experts(const wl_experts_t* experts, const int32_t* ids, int32_t iterations,
                                double* median_us, wl_error_t* error);
/* The steps before and after an exchange of parts that moves rows to experts, on one thread.
 * wl_floor_permute: row i of dst = row order[i] of src. wl_floor_weigh: row t of dst = the sum over
 * k of weights[t * top_k + k] times row order[t * top_k + k] of src. */
WL_API int32_t wl_floor_permute(void* dst, const void* src, const int32_t* order, uint64_t rows,
                                uint64_t row_bytes, wl_error_t* error);
WL_API int32_t wl_floor_weigh(void* dst, const void* src, const int32_t* order,
                              const float* weights, uint64_t tokens, uint32_t top_k,
                              uint64_t hidden, int32_t dtype, wl_error_t* error);
/* Measures `copies` contiguous copies, or copy-casts, of `bytes` source bytes. Reports the median
 * over iterations. `memory` has room for the source and each copy, from its first whole line of 64
 * bytes on. Each gets the size of the longest one, rounded up to whole lines. No cache holds the
 * source when it is read. If `memory` is NULL, the call uses its own memory and a source that was
 * just written. */
WL_API int32_t wl_floor_copy(void* memory, uint64_t memory_bytes, uint64_t bytes, uint32_t copies,
                             int32_t from_dtype, int32_t to_dtype, int32_t iterations,
                             double* median_us, wl_error_t* error);

#if defined(__cplusplus)
} /* extern "C" */
#endif
