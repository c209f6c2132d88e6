#include <stddef.h>
#include <stdint.h>
#if defined(__cplusplus)
extern "C" {
#endif
#define WL_API __attribute__((visibility("default")))
#define WL_ABI_VERSION 17u
typedef enum wl_code {
  WL_OK = 0,
  WL_INVALID_ARGUMENT = 1,
  WL_MISMATCH = 2,
  WL_DEADLINE_EXCEEDED = 3,
  WL_PEER_LOST = 4,
  WL_ABORTED = 5,
  WL_VERIFICATION_FAILED = 6,
  WL_UNSUPPORTED = 7,
  WL_RESOURCE = 8,
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
  WL_C64 = 16,
  WL_F8E4M3FNUZ = 17,
  WL_F8E5M2FNUZ = 18,
  WL_DTYPE_COUNT = 19
} wl_dtype;
typedef enum wl_reduce_op {
  WL_SUM = 0,
  WL_MAX = 1,
  WL_MIN = 2,
  WL_PRODUCT = 3,
  WL_AVG = 4,
  WL_AND = 5,
  WL_OR = 6,
  WL_XOR = 7,
  WL_PREMULTIPLIED_SUM = 8,
  WL_REDUCE_OP_COUNT = 9
} wl_reduce_op;
typedef enum wl_algorithm {
  WL_AUTO = 0,
  WL_PUSH = 1,
  WL_PULL = 2,
  WL_STAGED = 3,
  WL_ONE_PHASE = 4,
  WL_TWO_PHASE = 5,
  WL_RING = 6,
  WL_BIDIRECTIONAL_RING = 7
} wl_algorithm;
typedef enum wl_operation {
  WL_OP_NONE = 0,
  WL_OP_BARRIER = 1,
  WL_OP_ALL_TO_ALL = 2,
  WL_OP_BROADCAST = 3,
  WL_OP_WINDOW = 4,
  WL_OP_SPLIT = 5,
  WL_OP_REGISTER = 6,
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
  WL_OP_FIRST_ONE_SIDED = WL_OP_PUT,
  WL_OP_LAST_ONE_SIDED = WL_OP_ACCUMULATE,
  WL_OP_LINK = 23,
  WL_OP_LINK_REGISTER = 24,
  WL_OP_LINK_MOVE = 25,
  WL_OP_LINK_CHECK = 26,
  WL_OP_CHECK_REPLICAS = 27,
  WL_OP_ALL_GATHER_DIM = 28,
  WL_OP_SHRINK = 29,
  WL_OP_MEMORY_POOL = 30,
  WL_OP_LAUNCH = 31,
  WL_OP_EXPERT_DISPATCH = 32,
  WL_OP_EXPERT_COMBINE = 33,
  WL_OP_EXPERTS_OPEN = 34,
  WL_OP_MANIFEST_OPEN = 35,
  WL_OP_STORE_TO_HOST = 36,
  WL_OP_DEVICE_WINDOW = 37,
  WL_OP_SCAN = 38,
  WL_OP_EXCLUSIVE_SCAN = 39,
  WL_OP_REDUCE_SCATTER_DIM = 40,
  WL_OP_SEND = 41,
  WL_OP_RECEIVE = 42,
  WL_OP_SEND_RECEIVE = 43,
  WL_OP_FIRST_MESSAGE = WL_OP_SEND,
  WL_OP_LAST_MESSAGE = WL_OP_SEND_RECEIVE,
  WL_OP_COUNT = 44
} wl_operation;
#define WL_MAX_RANKS 4096
#define WL_MAX_DIMS 16
#define WL_MAX_BLOCKS 64
#define WL_MAX_PHASES 1048576
#define WL_MAX_DEVICE_RANKS 64
#define WL_MAX_DEVICE_CORES 16
#define WL_ERROR_FAULTY_RANKS 64
#define WL_ERROR_MESSAGE 2048
typedef struct wl_error {
  uint32_t struct_size;
  int32_t code;
  int32_t operation;
  int32_t observer;
  uint32_t sequence;
  int32_t faulty_rank_count;
  int32_t faulty_ranks[WL_ERROR_FAULTY_RANKS];
  char message[WL_ERROR_MESSAGE];
} wl_error_t;
typedef struct wl_group wl_group_t;
typedef struct wl_comm wl_comm_t;
typedef struct wl_window wl_window_t;
typedef struct wl_memory_pool wl_memory_pool_t;
typedef struct wl_transfer wl_transfer_t;
typedef struct wl_report wl_report_t;
WL_API uint32_t wl_abi_version(void);
WL_API const char* wl_version(void);
WL_API const char* wl_target(void);
WL_API const char* wl_code_name(int32_t code);
WL_API const char* wl_operation_name(int32_t operation);
WL_API const char* wl_call_name(int32_t operation);
WL_API const char* wl_algorithm_name(int32_t algorithm);
WL_API const char* wl_isa_path(void);
WL_API int32_t wl_allowed_cores(void);
WL_API int32_t wl_thread_adopt(int32_t place, int32_t stays);
WL_API int64_t wl_clock_ns(void);
WL_API int32_t wl_ascend_find(wl_error_t* error);
WL_API int32_t wl_cuda_find(wl_error_t* error);
WL_API int32_t wl_cuda_device_count(uint32_t* count, wl_error_t* error);
typedef struct wl_cuda_device_info {
  uint32_t struct_size;
  int32_t major;
  int32_t minor;
  int32_t driver_version;
  int32_t multiprocessors;
  uint64_t total_bytes;
  uint64_t free_bytes;
  char name[256];
} wl_cuda_device_t;
WL_API int32_t wl_cuda_device(uint32_t device, wl_cuda_device_t* out, wl_error_t* error);
WL_API int32_t wl_cuda_peer(uint32_t from, uint32_t to, int32_t* can, wl_error_t* error);
WL_API int32_t wl_cuda_cores(uint32_t device, uint32_t* cores, wl_error_t* error);
WL_API int32_t wl_cuda_grids_use(const char* table, wl_error_t* error);
WL_API int32_t wl_cuda_grids_rows(uint32_t device, uint32_t* rows, wl_error_t* error);
WL_API int32_t wl_cuda_memory_alloc(uint64_t beside, uint64_t bytes, uint64_t* address,
                                    wl_error_t* error);
WL_API void wl_cuda_memory_free(uint64_t address);
typedef struct wl_group_config {
  uint32_t struct_size;
  int32_t ranks;
  uint32_t first_sequence;
  int32_t cores;
  int64_t deadline_ns;
  int32_t blocks;
  int32_t adjust_threads;
  int32_t device_cores;
  const int32_t* hosts;
} wl_group_config_t;
WL_API int32_t wl_group_create(const wl_group_config_t* config, wl_group_t** group,
                               wl_error_t* error);
WL_API int32_t wl_group_join(wl_group_t* group, int32_t rank, wl_comm_t** comm, wl_error_t* error);
WL_API void wl_group_release(wl_group_t* group);
typedef struct wl_process {
  uint32_t struct_size;
  int32_t pid;
  uint64_t started;
  uint64_t pid_namespace;
} wl_process_t;
WL_API int32_t wl_process_self(wl_process_t* process, wl_error_t* error);
WL_API int32_t wl_process_named(int32_t pid, wl_process_t* process, wl_error_t* error);
typedef enum wl_process_state {
  WL_PROCESS_UNKNOWN = 0,
  WL_PROCESS_RUNS = 1,
  WL_PROCESS_STOPPED = 2,
  WL_PROCESS_ENDED = 3
} wl_process_state;
WL_API int32_t wl_process_look(const wl_process_t* process);
WL_API int32_t wl_group_share(const wl_group_config_t* config, int32_t* file, wl_error_t* error);
WL_API int32_t wl_file_open(const wl_process_t* owner, int32_t number, int32_t* file,
                            wl_error_t* error);
WL_API uint64_t wl_file_inode(int32_t file);
WL_API void wl_file_close(int32_t file);
WL_API int32_t wl_group_attach(int32_t file, wl_group_t** group, wl_error_t* error);
WL_API int32_t wl_group_watch(wl_group_t* group, const wl_process_t* process, const int32_t* ranks,
                              uint32_t count, int64_t silence_ns, wl_error_t* error);
WL_API int32_t wl_group_fail(wl_group_t* group, int32_t code, const int32_t* faulty_ranks,
                             uint32_t count, const char* message, wl_error_t* error);
WL_API int32_t wl_ucx_find(const char* path, wl_error_t* error);
WL_API int32_t wl_ucx_describe(char* text, uint64_t room, uint64_t* bytes, wl_error_t* error);
WL_API int32_t wl_group_open_wire(wl_group_t* group, const int32_t* ranks, uint32_t count,
                                  wl_error_t* error);
WL_API int32_t wl_group_wire_name(const wl_group_t* group, uint8_t* name, uint64_t room,
                                  uint64_t* bytes, wl_error_t* error);
WL_API int32_t wl_group_connect(wl_group_t* group, const uint8_t* names, const uint64_t* bytes,
                                uint32_t count, int64_t silence_ns, wl_error_t* error);
WL_API int32_t wl_comm_rank(const wl_comm_t* comm);
WL_API int32_t wl_comm_size(const wl_comm_t* comm);
WL_API int32_t wl_comm_split(wl_comm_t* comm, int32_t color, int32_t key, int64_t deadline_ns,
                             wl_comm_t** out, wl_error_t* error);
WL_API int32_t wl_comm_subgroup(wl_comm_t* comm, const int32_t* ranks, uint32_t count,
                                int64_t deadline_ns, wl_comm_t** out, wl_error_t* error);
WL_API int32_t wl_comm_shrink(wl_comm_t* comm, int64_t deadline_ns, wl_comm_t** out,
                              wl_error_t* error);
WL_API int32_t wl_comm_abort(wl_comm_t* comm, const char* reason, wl_error_t* error);
WL_API int32_t wl_comm_fail(wl_comm_t* comm, int32_t code, const int32_t* faulty_ranks,
                            uint32_t count, const char* message, wl_error_t* error);
WL_API int32_t wl_comm_status(wl_comm_t* comm, wl_error_t* error);
typedef struct wl_rank_state {
  uint32_t struct_size;
  int32_t busy;
  uint32_t sequence;
  int32_t operation;
  int32_t awaited;
  int32_t closed;
  uint32_t contested;
  int32_t item_owner;
  int32_t item_phase;
  int32_t item;
  int32_t joined;
  int32_t lost;
  int32_t former;
  int32_t pid;
  uint64_t started;
  uint64_t pid_namespace;
  int32_t host;
  int32_t elsewhere;
} wl_rank_state_t;
WL_API int32_t wl_comm_state(const wl_comm_t* comm, int32_t rank, wl_rank_state_t* state);
#define WL_RECORDS 64
#define WL_RECORD_TEXT 128
#define WL_RECORD_INSIDE (-1)
#define WL_RECORD_ENTERED (-2)
typedef struct wl_record {
  uint32_t struct_size;
  uint32_t sequence;
  int32_t operation;
  int32_t algorithm;
  int32_t dtype;
  int32_t op;
  int32_t root;
  int32_t code;
  uint64_t count;
  uint64_t bytes;
  int64_t entered_ns;
  int64_t left_ns;
  int64_t waited_ns;
  char text[WL_RECORD_TEXT];
} wl_record_t;
WL_API int32_t wl_comm_recorded(const wl_comm_t* comm, int32_t rank, wl_record_t* records,
                                int32_t capacity);
WL_API int32_t wl_comm_last_to_enter(const wl_comm_t* comm, uint32_t sequence);
typedef struct wl_totals {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t calls;
  uint64_t failures;
  uint64_t bytes;
  uint64_t waited_ns;
} wl_totals_t;
WL_API int32_t wl_comm_totals(const wl_comm_t* comm, int32_t operation, wl_totals_t* totals);
typedef enum wl_peer_memory_form {
  WL_PEER_MEMORY_OPEN = 0,
  WL_PEER_MEMORY_SHARED = 1,
  WL_PEER_MEMORY_READV = 2,
  WL_PEER_MEMORY_STAGE = 3,
  WL_PEER_MEMORY_REFUSED = 4
} wl_peer_memory_form;
typedef struct wl_peer_memory {
  uint32_t struct_size;
  int32_t form;
  char why[256];
} wl_peer_memory_t;
WL_API int32_t wl_comm_peer_memory(const wl_comm_t* comm, wl_peer_memory_t* memory,
                                   wl_error_t* error);
#define WL_ENGINES 4
typedef struct wl_kernel_profile {
  uint32_t struct_size;
  uint32_t reserved;
  char kernel[80];
  uint64_t runs;
  uint64_t cores;
  uint64_t cycles;
  uint64_t overlap_cycles;
  uint64_t flags;
  uint64_t barriers;
  uint64_t notifies;
  uint64_t buffer_bytes;
  uint64_t instructions[WL_ENGINES];
  uint64_t bytes[WL_ENGINES];
  uint64_t busy_cycles[WL_ENGINES];
} wl_kernel_profile_t;
WL_API int32_t wl_profile_start(int32_t traces, wl_error_t* error);
WL_API int32_t wl_profile_kernels(wl_kernel_profile_t* kernels, uint32_t capacity, uint64_t* count,
                                  wl_error_t* error);
WL_API int32_t wl_profile_trace(char* text, uint64_t capacity, uint64_t* length,
                                wl_error_t* error);
#define WL_REPORT_GROUPS 4096
WL_API int32_t wl_report_find(const wl_process_t* process, int32_t* numbers, uint32_t capacity,
                              uint64_t* count, wl_error_t* error);
WL_API int32_t wl_report_open(const wl_process_t* owner, int32_t number, wl_report_t** report,
                              wl_error_t* error);
typedef struct wl_report_group {
  uint32_t struct_size;
  int32_t ranks;
  uint64_t id;
  uint64_t parent;
  int64_t made_ns;
} wl_report_group_t;
WL_API int32_t wl_report_about(const wl_report_t* report, wl_report_group_t* group);
WL_API int32_t wl_report_state(const wl_report_t* report, int32_t rank, wl_rank_state_t* state);
WL_API int32_t wl_report_recorded(const wl_report_t* report, int32_t rank, wl_record_t* records,
                                  int32_t capacity);
WL_API int32_t wl_report_peer_memory(const wl_report_t* report, wl_peer_memory_t* memory,
                                     wl_error_t* error);
WL_API int32_t wl_report_failure(const wl_report_t* report, wl_error_t* error);
WL_API void wl_report_close(wl_report_t* report);
WL_API int32_t wl_comm_quiescent(const wl_comm_t* comm);
WL_API int32_t wl_comm_close(wl_comm_t* comm, wl_error_t* error);
WL_API void wl_comm_free(wl_comm_t* comm);
WL_API int32_t wl_memory_alloc(uint64_t bytes, uint64_t alignment, void** memory,
                               wl_error_t* error);
WL_API void wl_memory_free(void* memory);
WL_API uint64_t wl_memory_available(void);
WL_API int32_t wl_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                wl_window_t** window, wl_error_t* error);
WL_API int32_t wl_device_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                       wl_window_t** window, wl_error_t* error);
WL_API void* wl_window_address(const wl_window_t* window, int32_t rank);
WL_API uint64_t wl_window_bytes(const wl_window_t* window);
WL_API void wl_window_free(wl_window_t* window);
WL_API int32_t wl_memory_pool_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                     wl_memory_pool_t** pool, wl_error_t* error);
WL_API int32_t wl_memory_pool_alloc(wl_memory_pool_t* pool, uint64_t bytes, void** memory,
                                    wl_error_t* error);
WL_API int32_t wl_memory_pool_release(wl_memory_pool_t* pool, void* memory, wl_error_t* error);
WL_API uint64_t wl_memory_pool_used(const wl_memory_pool_t* pool);
WL_API void wl_memory_pool_free(wl_memory_pool_t* pool);
WL_API int32_t wl_file_create(const char* path, uint64_t bytes, wl_error_t* error);
WL_API int32_t wl_file_map(const char* path, uint64_t bytes, void** address, wl_error_t* error);
WL_API int32_t wl_file_unmap(void* address, uint64_t bytes, wl_error_t* error);
WL_API int32_t wl_file_exchange(const char* a, const char* b, wl_error_t* error);
WL_API int32_t wl_file_read_private(const char* path, void* bytes, uint64_t room, uint64_t* size,
                                    wl_error_t* error);
WL_API int32_t wl_file_publish(const char* from, const char* to, wl_error_t* error);
typedef struct wl_tensor {
  uint32_t struct_size;
  int32_t dtype;
  uint32_t ndim;
  uint32_t reserved;
  void* data;
  const int64_t* shape;
  const int64_t* strides;
} wl_tensor_t;
WL_API int32_t wl_tensor_copy(const wl_tensor_t* dst, const wl_tensor_t* src, wl_error_t* error);
WL_API int32_t wl_tensors_overlap(const wl_tensor_t* a, const wl_tensor_t* b);
WL_API int32_t wl_tensor_fill(const wl_tensor_t* dst, const void* element, wl_error_t* error);
WL_API int32_t wl_tensor_fold(const wl_tensor_t* dst, const wl_tensor_t* const* sources,
                              uint32_t count, int32_t op, wl_error_t* error);
WL_API int32_t wl_tensor_hash(const wl_tensor_t* const* sources, uint32_t count, int32_t op,
                              int32_t wire, int32_t dtype, uint64_t seed, uint64_t* hash,
                              wl_error_t* error);
WL_API int32_t wl_dtype_size(int32_t dtype);
WL_API int32_t wl_dtype_can_cast(int32_t from, int32_t to);
WL_API int32_t wl_dtype_can_reduce(int32_t dtype, int32_t op);
typedef struct wl_call {
  uint32_t struct_size;
  int32_t operation;
  const void* in;
  uint64_t in_elements;
  void* out;
  uint64_t out_elements;
  int32_t dtype;
  int32_t op;
  int32_t algorithm;
  int32_t root;
  int64_t rows;
  const int64_t* in_counts;
  const int64_t* in_offsets;
  const int64_t* out_counts;
  const int64_t* out_offsets;
  int64_t* received_counts;
  int64_t deadline_ns;
  uint64_t* ticket;
  uint64_t stream;
  double factor;
} wl_call_t;
WL_API int32_t wl_submit(wl_comm_t* comm, const wl_call_t* call, wl_error_t* error);
WL_API int32_t wl_enqueued_await(wl_comm_t* comm, uint64_t ticket, int64_t limit_ns, int32_t* over,
                                 wl_error_t* error);
typedef struct wl_kernel_library wl_kernel_library_t;
WL_API int32_t wl_kernel_library_load(const char* path, const char* target,
                                      wl_kernel_library_t** library, wl_error_t* error);
WL_API int32_t wl_kernel_count(const wl_kernel_library_t* library);
WL_API const char* wl_kernel_name(const wl_kernel_library_t* library, int32_t kernel);
WL_API const char* wl_kernel_signature(const wl_kernel_library_t* library, int32_t kernel);
typedef enum wl_argument_kind { WL_ARGUMENT_TENSOR = 0, WL_ARGUMENT_SCALAR = 1 } wl_argument_kind;
WL_API int32_t wl_launch(wl_comm_t* comm, const wl_kernel_library_t* library, int32_t kernel,
                         const int64_t* arguments, uint64_t words, int64_t deadline_ns,
                         wl_error_t* error);
typedef struct wl_experts {
  uint32_t struct_size;
  int32_t dtype;
  uint32_t ranks;
  uint32_t experts;
  uint32_t top_k;
  uint32_t alignment;
  uint32_t quantised;
  uint32_t reserved;
  uint64_t hidden;
  uint64_t tokens;
  uint64_t rows;
} wl_experts_t;
#define WL_MAX_TOP_K 64
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
WL_API int32_t wl_experts_route(const wl_comm_t* comm, const wl_experts_t* experts, void* table,
                                uint32_t number, uint64_t count, const void* ids,
                                int32_t ids_dtype, const float* weights, wl_error_t* error);
WL_API int32_t wl_experts_dispatch(wl_comm_t* comm, void* table, void* buffer, const void* tokens,
                                   uint64_t count, int64_t deadline_ns, wl_error_t* error);
WL_API int32_t wl_experts_combine(wl_comm_t* comm, void* table, const void* outputs, int32_t dtype,
                                  void* out, uint64_t count, int64_t deadline_ns,
                                  wl_error_t* error);
#define WL_ANY (-1)
typedef struct wl_message {
  uint32_t struct_size;
  int32_t operation;
  int32_t peer;
  int32_t tag;
  int32_t dtype;
  int32_t source;
  int32_t found_tag;
  int32_t reserved;
  void* data;
  uint64_t elements;
  uint64_t received;
} wl_message_t;
WL_API int32_t wl_messages(wl_comm_t* comm, wl_message_t* messages, uint32_t count,
                           int64_t deadline_ns, wl_error_t* error);
WL_API int32_t wl_messages_start(wl_comm_t* comm, wl_message_t* messages, uint32_t count,
                                 int64_t deadline_ns, uint64_t* ticket, wl_error_t* error);
WL_API int32_t wl_messages_next(wl_comm_t* comm, int64_t limit_ns, uint64_t* ticket,
                                wl_error_t* error);
WL_API int32_t wl_messages_withdraw(wl_comm_t* comm, uint64_t ticket, int32_t* withdrawn,
                                    wl_error_t* error);
WL_API int32_t wl_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_accumulate(wl_comm_t* comm, const wl_window_t* window,
                                    const wl_tensor_t* local, int32_t peer,
                                    const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error);
WL_API int32_t wl_device_clear(wl_comm_t* comm, const wl_tensor_t* tensor, wl_error_t* error);
WL_API int32_t wl_device_hash(wl_comm_t* comm, const wl_tensor_t* tensor, uint64_t seed,
                              uint64_t* hash, wl_error_t* error);
#define WL_SIGNAL_LINE_BYTES 64
WL_API int32_t wl_notify(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                         uint64_t value, wl_error_t* error);
WL_API int32_t wl_wait(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                       uint64_t value, int64_t deadline_ns, wl_error_t* error);
WL_API int32_t wl_test(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                       uint64_t value, int32_t* reached, wl_error_t* error);
typedef struct wl_transfer_config {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t fingerprint;
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
WL_API int32_t wl_transfer_create(wl_comm_t* comm, const wl_transfer_config_t* config,
                                  int64_t deadline_ns, wl_transfer_t** transfer, wl_error_t* error);
WL_API int32_t wl_transfer_run(wl_transfer_t* transfer, uint64_t version, int64_t deadline_ns,
                               wl_error_t* error);
#define WL_ANY_VERSION (-1)
#define WL_NO_VERSION (-2)
#define WL_FINISHED (-3)
WL_API int32_t wl_transfer_move(wl_transfer_t* transfer, uint64_t number, int64_t* version,
                                int64_t deadline_ns, wl_error_t* error);
WL_API uint64_t wl_transfer_begun(const wl_transfer_t* transfer);
WL_API int32_t wl_transfer_progress(const wl_transfer_t* transfer, int32_t rank, uint64_t* moved,
                                    uint32_t count, wl_error_t* error);
WL_API int32_t wl_transfer_hash(wl_transfer_t* transfer, uint32_t binding, const int32_t* ranks,
                                uint32_t count, const int64_t* start, const int64_t* length,
                                int32_t op, int32_t wire, int32_t dtype, uint64_t seed,
                                uint64_t* hash, wl_error_t* error);
WL_API uint64_t wl_transfer_staging_bytes(const wl_transfer_t* transfer);
WL_API void wl_transfer_free(wl_transfer_t* transfer);
typedef struct wl_floor_config {
  uint32_t struct_size;
  int32_t operation;
  int32_t ranks;
  int32_t iterations;
  uint64_t bytes;
} wl_floor_config_t;
WL_API int32_t wl_floor_measure(const wl_floor_config_t* config, double* median_us,
                                wl_error_t* error);
WL_API int32_t wl_floor_experts(const wl_experts_t* experts, const int32_t* ids, int32_t iterations,
                                double* median_us, wl_error_t* error);
WL_API int32_t wl_floor_permute(void* dst, const void* src, const int32_t* order, uint64_t rows,
                                uint64_t row_bytes, wl_error_t* error);
WL_API int32_t wl_floor_weigh(void* dst, const void* src, const int32_t* order,
                              const float* weights, uint64_t tokens, uint32_t top_k,
                              uint64_t hidden, int32_t dtype, wl_error_t* error);
WL_API int32_t wl_floor_copy(void* memory, uint64_t memory_bytes, uint64_t bytes, uint32_t copies,
                             int32_t from_dtype, int32_t to_dtype, int32_t iterations,
                             double* median_us, wl_error_t* error);
#if defined(__cplusplus)
}
#endif
