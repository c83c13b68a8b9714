// Launches from Python without Python in between: a table from signatures (types, shapes, strides, device and other arguments of a call) to
// what was recorded for them, namely outputs to allocate and calls (runtime/call.h) to launch. A call that has an entry is read, looked up
// and launched here; any other goes to a Python function, which may add the entry (python/tilewright/_tables.py). Tensors are read through
// DLPack's exchange table, and the interpreter through its stable ABI, so nothing of torch or Python is needed to build this.
//
// All of it runs under the interpreter's lock, which is released for the launch itself: the driver may wait for room in its queue.
#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/capi.h"
#include "runtime/driver.h"
#include "runtime/python_abi.h"

namespace tw::runtime {
namespace py {

const Calls* calls() {
    static const Calls* const found = []() -> const Calls* {
        static Calls made;
        bool whole = true;
        const auto find = [&](const char* symbol) {
            void* at = dlsym(RTLD_DEFAULT, symbol);
            whole &= at != nullptr;
            return at;
        };
#define TW_RESOLVE(name, symbol, result, parameters) made.name = reinterpret_cast<decltype(made.name)>(find(symbol));
        TW_PYTHON_CALLS(TW_RESOLVE)
#undef TW_RESOLVE
        made.none = static_cast<Object*>(find("_Py_NoneStruct"));
        made.true_object = static_cast<Object*>(find("_Py_TrueStruct"));
        made.false_object = static_cast<Object*>(find("_Py_FalseStruct"));
        made.not_implemented = static_cast<Object*>(find("_Py_NotImplementedStruct"));
        made.float_type = static_cast<Object*>(find("PyFloat_Type"));
        made.int_type = static_cast<Object*>(find("PyLong_Type"));
        made.text_type = static_cast<Object*>(find("PyUnicode_Type"));
        auto* const type_error = static_cast<Object**>(find("PyExc_TypeError"));
        if (type_error) made.type_error = *type_error;
        return whole ? &made : nullptr;
    }();
    return found;
}

}  // namespace py

namespace {

constexpr std::size_t most_arguments = 24, most_tensors = 16, most_outputs = 8, most_rank = 8, most_entries = 8192;
constexpr std::size_t words_of_tensor = 2 + 2 * most_rank;

struct TensorType {
    py::Object* type = nullptr;
    const py::ExchangeTable* exchange = nullptr;
};

// What setup() gave; for the life of the process.
struct World {
    std::vector<TensorType> types;
    py::Object *empty = nullptr, *grad_enabled = nullptr, *fail = nullptr;
    py::Object *requires_grad = nullptr, *table_name = nullptr, *slow_name = nullptr;
    long long recordings = 0;  // under way: what they call must go through Python, which writes it down
} world;

// An object that is given back at the end of its scope.
class Held {
public:
    explicit Held(py::Object* object = nullptr) : object_(object) {}
    Held(Held&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Held& operator=(Held&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Held() {
        if (object_) py::calls()->decrement(object_);
    }
    static Held shared(py::Object* object) {
        if (object) py::calls()->increment(object);
        return Held(object);
    }
    py::Object* get() const { return object_; }
    py::Object* release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }

private:
    py::Object* object_;
};

// The arguments of one call as the table sees them. Everything borrowed.
struct Reading {
    py::Object* tensors[most_tensors];
    std::uint64_t addresses[most_tensors];
    std::size_t tensor_count = 0;
    py::Object* others[most_arguments];  // of the signature: compared by value
    std::size_t other_count = 0;
    double numbers[most_arguments];  // that flow to the launch
    std::size_t number_count = 0;
    std::int64_t words[most_tensors * words_of_tensor + 4];
    std::size_t word_count = 0;
    std::uint64_t hash = 0;
    std::int32_t device = -1;
    const py::ExchangeTable* exchange = nullptr;

    void add_word(std::int64_t word) {
        words[word_count++] = word;
        hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
};

struct Pointer {
    std::size_t source = 0;  // tensor arguments, then outputs
    std::uint64_t offset = 0;
};

constexpr std::size_t no_workspace = SIZE_MAX;

struct Step {
    tw_call* call = nullptr;
    std::vector<Pointer> pointers;
    std::size_t workspace = no_workspace;  // the output that is the buffers of a program
    std::vector<double> scalars;           // of an operation
};

struct Output {
    Held sizes, strides, dtype;
};

struct Entry {
    std::vector<std::int64_t> words;
    std::vector<Held> others;
    std::vector<Output> outputs;
    std::vector<Step> steps;
    std::vector<std::size_t> results;
    bool is_tuple = false;
    cu::Context context = nullptr;
};

// Shared with the calls under way: while one launches, without the lock, another thread may replace or forget its entry.
using Entries = std::unordered_multimap<std::uint64_t, std::shared_ptr<const Entry>>;

struct Table {
    bool flowing = false;
    Entries entries;
};

constexpr const char* capsule_name = "tilewright.table";

bool is_type(py::Object* object, const py::Object* type) {
    const Held found(py::calls()->type_of(object));
    return found.get() == type;
}

// Numbers are equal with the same bits: -0.0 and 0.0 are two, 1 and 1.0 and True too.
bool same_object(py::Object* a, py::Object* b) {
    if (a == b) return true;
    const py::Calls& python = *py::calls();
    const Held type(python.type_of(a));
    if (!is_type(b, type.get())) return false;
    if (type.get() == python.float_type) {
        const double x = python.to_double(a), y = python.to_double(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    constexpr int equal = 2;  // Py_EQ
    return python.same_value(a, b, equal) == 1;
}

bool add_tensor(Reading& reading, py::Object* object, const py::ExchangeTable& exchange) {
    py::DlTensor t;
    if (reading.tensor_count == most_tensors) return false;
    if (exchange.tensor_from_object(object, &t) != 0) {
        py::calls()->error_clear();
        return false;
    }
    if (t.device_type != py::device_cuda || t.rank > static_cast<std::int32_t>(most_rank) || (t.rank > 0 && !t.strides)) return false;
    if (reading.device >= 0 && reading.device != t.device_id) return false;
    reading.device = t.device_id;
    reading.exchange = &exchange;
    reading.tensors[reading.tensor_count] = object;
    reading.addresses[reading.tensor_count++] = reinterpret_cast<std::uint64_t>(t.data) + t.byte_offset;
    reading.add_word(std::int64_t{t.code} | std::int64_t{t.bits} << 8 | std::int64_t{t.lanes} << 16 | std::int64_t{t.rank} << 32);
    for (std::int32_t d = 0; d < t.rank; ++d) reading.add_word(t.shape[d]), reading.add_word(t.strides[d]);
    return true;
}

// One argument; false: not of a kind that is recorded.
bool add_argument(Reading& reading, const Table& table, py::Object* object) {
    const py::Calls& python = *py::calls();
    if (reading.other_count + reading.number_count + reading.tensor_count >= most_arguments) return false;
    const Held type(python.type_of(object));
    for (const TensorType& known : world.types)
        if (type.get() == known.type) return add_tensor(reading, object, *known.exchange);
    if (table.flowing) {
        if (type.get() != python.float_type && type.get() != python.int_type) return false;
        reading.numbers[reading.number_count++] = python.to_double(object);
        if (!python.error_occurred()) return true;
        python.error_clear();  // an integer beyond a double
        return false;
    }
    const bool plain = object == python.none || object == python.true_object || object == python.false_object ||
                       type.get() == python.float_type || type.get() == python.int_type || type.get() == python.text_type;
    reading.others[reading.other_count++] = object;
    return plain;
}

void close_reading(Reading& reading, std::size_t given) {
    reading.add_word(static_cast<std::int64_t>(given << 32 | reading.other_count << 16 | reading.number_count));
    reading.add_word(reading.device);
}

bool read_tuple(Reading& reading, const Table& table, py::Object* given, py::Object* named) {
    const py::Calls& python = *py::calls();
    const py::Size count = python.tuple_size(given);
    if (count < 0) return python.error_clear(), false;
    for (py::Size i = 0; i < count; ++i)
        if (!add_argument(reading, table, python.tuple_item(given, i))) return false;
    if (named && named != python.none) {
        py::Object *key = nullptr, *value = nullptr;
        for (py::Size at = 0; python.dict_next(named, &at, &key, &value);) {
            if (table.flowing || reading.other_count >= most_arguments) return false;
            reading.others[reading.other_count++] = key;
            if (!add_argument(reading, table, value)) return false;
        }
    }
    close_reading(reading, static_cast<std::size_t>(count));
    return reading.tensor_count > 0;
}

// end(): nothing is recorded for these arguments.
Entries::const_iterator find(const Entries& entries, const Reading& reading) {
    const auto [first, last] = entries.equal_range(reading.hash);
    for (auto at = first; at != last; ++at) {
        const Entry& e = *at->second;
        if (e.words.size() != reading.word_count ||
            std::memcmp(e.words.data(), reading.words, reading.word_count * sizeof(std::int64_t)) != 0)
            continue;
        bool same = e.others.size() == reading.other_count;
        for (std::size_t i = 0; same && i < e.others.size(); ++i) same = same_object(e.others[i].get(), reading.others[i]);
        if (same) return at;
        py::calls()->error_clear();
    }
    return entries.end();
}

cu::Context current_context() {
    auto opened = driver();
    cu::Context context = nullptr;
    if (opened && (*opened)->call.context_current(&context)) context = nullptr;
    return context;
}

// An operation whose result would need a gradient is torch's to record.
bool needs_gradient(const Reading& reading) {
    const py::Calls& python = *py::calls();
    bool wanted = false;
    for (std::size_t i = 0; i < reading.tensor_count && !wanted; ++i) {
        const Held needs(python.attribute(reading.tensors[i], world.requires_grad));
        wanted = needs.get() != python.false_object;
    }
    if (!wanted || !world.grad_enabled) return false;
    python.error_clear();
    const Held enabled(python.call_with(world.grad_enabled, nullptr));
    return enabled.get() != python.false_object;
}

// Sets the Python error of a launch that failed; always nullptr.
py::Object* launch_failed(int code) {
    const py::Calls& python = *py::calls();
    const Held number(python.from_integer(code));
    const Held nothing(python.call_with(world.fail, number.get(), nullptr));
    if (!python.error_occurred()) python.error_set(python.type_error, "a launch failed");
    return nullptr;
}

// A tensor of torch's own allocator, which hands memory out in the stream's order and keeps what a captured graph uses.
Held allocated(const Output& output, const py::ExchangeTable& exchange, std::uint64_t& address) {
    Held made(py::calls()->call_with(world.empty, output.sizes.get(), output.strides.get(), output.dtype.get(), nullptr));
    py::DlTensor t;
    if (!made || exchange.tensor_from_object(made.get(), &t) != 0) return Held();
    address = reinterpret_cast<std::uint64_t>(t.data) + t.byte_offset;
    return made;
}

int launch_step(const Step& step, const Reading& reading, const std::uint64_t* addresses, void* stream) {
    std::uint64_t given[most_tensors];
    for (std::size_t i = 0; i < step.pointers.size(); ++i) given[i] = addresses[step.pointers[i].source] + step.pointers[i].offset;
    const double* scalars = step.scalars.empty() ? reading.numbers : step.scalars.data();
    return tw_call_launch(step.call, given, scalars, step.workspace == no_workspace ? 0 : addresses[step.workspace], stream);
}

// The entry's outputs and launches. A new reference, or nullptr with the error set.
py::Object* run_entry(const Entry& entry, const Reading& reading) {
    const py::Calls& python = *py::calls();
    std::uint64_t addresses[most_tensors + most_outputs];
    std::memcpy(addresses, reading.addresses, reading.tensor_count * sizeof(std::uint64_t));
    Held made[most_outputs];
    for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
        const Output& o = entry.outputs[i];
        made[i] = allocated(o, *reading.exchange, addresses[reading.tensor_count + i]);
        if (!made[i]) return nullptr;
    }
    void* stream = nullptr;
    if (reading.exchange->current_stream(py::device_cuda, reading.device, &stream) != 0) return nullptr;
    int code = 0;
    void* const thread = python.release_lock();
    for (std::size_t i = 0; i < entry.steps.size() && code == 0; ++i) code = launch_step(entry.steps[i], reading, addresses, stream);
    python.take_lock(thread);
    if (code != 0) return launch_failed(code);
    if (!entry.is_tuple) return entry.results.empty() ? Held::shared(python.none).release() : made[entry.results[0]].release();
    Held tuple(python.tuple_new(static_cast<py::Size>(entry.results.size())));
    if (!tuple) return nullptr;
    for (std::size_t i = 0; i < entry.results.size(); ++i) {
        const Held& one = made[entry.results[i]];
        python.tuple_set(tuple.get(), static_cast<py::Size>(i), Held::shared(one.get()).release());
    }
    return tuple.release();
}

// NotImplemented (a new reference): nothing is recorded for this call.
py::Object* run_reading(const Table& table, const Reading& reading) {
    const auto found = world.recordings == 0 ? find(table.entries, reading) : table.entries.end();
    const std::shared_ptr<const Entry> entry = found == table.entries.end() ? nullptr : found->second;
    if (!entry || entry->context != current_context() || (!table.flowing && needs_gradient(reading)))
        return Held::shared(py::calls()->not_implemented).release();
    if (!table.flowing) {
        // An operation copies tensors that begin inside a vector of 16 bytes, which is not what was recorded.
        for (std::size_t i = 0; i < reading.tensor_count; ++i)
            if (reading.addresses[i] % 16 != 0) return Held::shared(py::calls()->not_implemented).release();
    }
    return run_entry(*entry, reading);
}

Table* table_of(py::Object* capsule) { return static_cast<Table*>(py::calls()->capsule_pointer(capsule, capsule_name)); }

py::Object* refuse_arguments(const char* words) {
    py::calls()->error_set(py::calls()->type_error, words);
    return nullptr;
}

// run(table, given, named)
py::Object* run(py::Object*, py::Object* const* arguments, py::Size count) {
    if (count != 3) return refuse_arguments("run(table, given, named)");
    const Table* table = table_of(arguments[0]);
    if (!table) return nullptr;
    Reading reading;
    if (!read_tuple(reading, *table, arguments[1], arguments[2])) return Held::shared(py::calls()->not_implemented).release();
    return run_reading(*table, reading);
}

// What runner(table) gives: run() of that table.
py::Object* run_bound(py::Object* table, py::Object* const* arguments, py::Size count) {
    if (count != 2) return refuse_arguments("(given, named)");
    py::Object* const whole[] = {table, arguments[0], arguments[1]};
    return run(nullptr, whole, 3);
}

py::Object* make_runner(py::Object*, py::Object* const* arguments, py::Size count) {
    static py::MethodDefinition definition{"launch", reinterpret_cast<void*>(run_bound), py::fast_call, nullptr};
    if (count != 1 || !table_of(arguments[0])) return refuse_arguments("runner(table)");
    return py::calls()->function_new(&definition, arguments[0], nullptr);
}

// The method of a class: its table first, then its _slow().
py::Object* called(py::Object* self, py::Object* const* arguments, py::Size count, py::Object* names) {
    const py::Calls& python = *py::calls();
    if (!names || python.tuple_size(names) == 0) {
        const Held capsule(python.attribute(self, world.table_name));
        const Table* table = capsule ? table_of(capsule.get()) : nullptr;
        if (!table) return nullptr;
        Reading reading;
        bool readable = count <= static_cast<py::Size>(most_arguments);
        for (py::Size i = 0; readable && i < count; ++i) readable = add_argument(reading, *table, arguments[i]);
        if (readable && reading.tensor_count > 0) {
            close_reading(reading, static_cast<std::size_t>(count));
            Held result(run_reading(*table, reading));
            if (result.get() != python.not_implemented) return result.release();
        }
    }
    const Held slow(python.attribute(self, world.slow_name));
    const Held given(python.tuple_new(count)), named(python.dict_new());
    if (!slow || !given || !named) return nullptr;
    for (py::Size i = 0; i < count; ++i) python.tuple_set(given.get(), i, Held::shared(arguments[i]).release());
    const py::Size named_count = names ? python.tuple_size(names) : 0;
    for (py::Size i = 0; i < named_count; ++i) python.dict_set(named.get(), python.tuple_item(names, i), arguments[count + i]);
    return python.call(slow.get(), given.get(), named.get());
}

void delete_table(py::Object* capsule) { delete table_of(capsule); }

// table(flowing)
py::Object* make_table(py::Object*, py::Object* const* arguments, py::Size count) {
    if (count != 1) return refuse_arguments("table(flowing)");
    auto made = std::make_unique<Table>();
    made->flowing = py::calls()->is_true(arguments[0]) == 1;
    py::Object* capsule = py::calls()->capsule_new(made.get(), capsule_name, delete_table);
    if (capsule) made.release();
    return capsule;
}

std::size_t index_of(py::Object* number) { return static_cast<std::size_t>(py::calls()->to_integer(number)); }

// ((sizes, strides, dtype), ...)
bool read_outputs(py::Object* described, Entry& entry) {
    const py::Calls& python = *py::calls();
    const py::Size count = python.tuple_size(described);
    if (count < 0 || count > static_cast<py::Size>(most_outputs)) return false;
    for (py::Size i = 0; i < count; ++i) {
        py::Object* one = python.tuple_item(described, i);
        if (!one || python.tuple_size(one) != 3) return false;
        entry.outputs.push_back(
            {Held::shared(python.tuple_item(one, 0)), Held::shared(python.tuple_item(one, 1)), Held::shared(python.tuple_item(one, 2))});
    }
    return true;
}

// ((handle, ((source, offset), ...), workspace or None, scalars), ...)
bool read_steps(py::Object* described, std::size_t sources, Entry& entry) {
    const py::Calls& python = *py::calls();
    const py::Size count = python.tuple_size(described);
    for (py::Size i = 0; i < count; ++i) {
        py::Object* one = python.tuple_item(described, i);
        if (python.tuple_size(one) != 4) return false;
        Step step;
        step.call = reinterpret_cast<tw_call*>(static_cast<std::uintptr_t>(python.to_unsigned(python.tuple_item(one, 0))));
        py::Object* pointers = python.tuple_item(one, 1);
        const py::Size pointer_count = python.tuple_size(pointers);
        if (pointer_count < 0 || pointer_count > static_cast<py::Size>(most_tensors)) return false;
        for (py::Size k = 0; k < pointer_count; ++k) {
            py::Object* pair = python.tuple_item(pointers, k);
            if (python.tuple_size(pair) != 2) return false;
            step.pointers.push_back({index_of(python.tuple_item(pair, 0)), index_of(python.tuple_item(pair, 1))});
            if (step.pointers.back().source >= sources) return false;
        }
        if (py::Object* workspace = python.tuple_item(one, 2); workspace != python.none) {
            step.workspace = index_of(workspace);
            if (step.workspace >= sources) return false;
        }
        py::Object* scalars = python.tuple_item(one, 3);
        const py::Size scalar_count = python.tuple_size(scalars);
        for (py::Size k = 0; k < scalar_count; ++k) step.scalars.push_back(python.to_double(python.tuple_item(scalars, k)));
        entry.steps.push_back(std::move(step));
    }
    return count >= 0;
}

// None, the number of an output, or a tuple of such.
bool read_results(py::Object* described, Entry& entry) {
    const py::Calls& python = *py::calls();
    if (described == python.none) return true;
    entry.is_tuple = !is_type(described, python.int_type);
    if (!entry.is_tuple) entry.results.push_back(index_of(described));
    for (py::Size i = 0, count = entry.is_tuple ? python.tuple_size(described) : 0; i < count; ++i)
        entry.results.push_back(index_of(python.tuple_item(described, i)));
    for (const std::size_t r : entry.results)
        if (r >= entry.outputs.size()) return false;
    return true;
}

// remember(table, given, named, outputs, steps, result)
py::Object* remember(py::Object*, py::Object* const* arguments, py::Size count) {
    const py::Calls& python = *py::calls();
    if (count != 6) return refuse_arguments("remember(table, given, named, outputs, steps, result)");
    Table* table = table_of(arguments[0]);
    if (!table) return nullptr;
    Reading reading;
    if (!read_tuple(reading, *table, arguments[1], arguments[2])) return Held::shared(python.false_object).release();
    auto entry = std::make_unique<Entry>();
    const bool read = read_outputs(arguments[3], *entry) &&
                      read_steps(arguments[4], reading.tensor_count + entry->outputs.size(), *entry) && read_results(arguments[5], *entry);
    if (python.error_occurred()) return nullptr;
    if (!read) return refuse_arguments("remember: outputs, steps or results are not as expected");
    entry->words.assign(reading.words, reading.words + reading.word_count);
    for (std::size_t i = 0; i < reading.other_count; ++i) entry->others.push_back(Held::shared(reading.others[i]));
    entry->context = current_context();
    if (const auto known = find(table->entries, reading); known != table->entries.end()) table->entries.erase(known);
    // A caller whose shapes never come back must not fill the memory.
    if (table->entries.size() >= most_entries) table->entries.clear();
    table->entries.emplace(reading.hash, std::move(entry));
    return Held::shared(python.true_object).release();
}

// setup(types, empty, grad_enabled, fail)
py::Object* setup(py::Object*, py::Object* const* arguments, py::Size count) {
    const py::Calls& python = *py::calls();
    if (count != 4) return refuse_arguments("setup(types, empty, grad_enabled, fail)");
    const Held name(python.text("__dlpack_c_exchange_api__"));
    bool taken = false;
    for (py::Size i = 0, types = python.tuple_size(arguments[0]); i < types; ++i) {
        py::Object* type = python.tuple_item(arguments[0], i);
        const Held capsule(python.attribute(type, name.get()));
        const auto* exchange =
            capsule ? static_cast<const py::ExchangeTable*>(python.capsule_pointer(capsule.get(), "dlpack_exchange_api")) : nullptr;
        python.error_clear();
        if (!exchange || exchange->major != 1 || !exchange->tensor_from_object || !exchange->current_stream) continue;
        world.types.push_back({Held::shared(type).release(), exchange});
        taken = true;
    }
    world.empty = Held::shared(arguments[1]).release();
    world.grad_enabled = arguments[2] == python.none ? nullptr : Held::shared(arguments[2]).release();
    world.fail = Held::shared(arguments[3]).release();
    return Held::shared(taken ? python.true_object : python.false_object).release();
}

// recording(1) at the beginning of one, recording(-1) at its end
py::Object* recording(py::Object*, py::Object* const* arguments, py::Size count) {
    if (count != 1) return refuse_arguments("recording(1 or -1)");
    world.recordings += py::calls()->to_integer(arguments[0]);
    return Held::shared(py::calls()->none).release();
}

// method(type)
py::Object* make_method(py::Object*, py::Object* const* arguments, py::Size count) {
    static py::MethodDefinition definition{"__call__", reinterpret_cast<void*>(called), py::fast_call | py::keywords, nullptr};
    if (count != 1) return refuse_arguments("method(type)");
    return py::calls()->method_new(arguments[0], &definition);
}

}  // namespace
}  // namespace tw::runtime

extern "C" void* tw_python_functions(void) {
    using namespace tw::runtime;
    const py::Calls* python = py::calls();
    if (!python) return nullptr;
    static py::MethodDefinition definitions[] = {{"setup", reinterpret_cast<void*>(setup), py::fast_call, nullptr},
                                                 {"table", reinterpret_cast<void*>(make_table), py::fast_call, nullptr},
                                                 {"remember", reinterpret_cast<void*>(remember), py::fast_call, nullptr},
                                                 {"run", reinterpret_cast<void*>(run), py::fast_call, nullptr},
                                                 {"runner", reinterpret_cast<void*>(make_runner), py::fast_call, nullptr},
                                                 {"recording", reinterpret_cast<void*>(recording), py::fast_call, nullptr},
                                                 {"method", reinterpret_cast<void*>(make_method), py::fast_call, nullptr}};
    world.requires_grad = python->text("requires_grad");
    world.table_name = python->text("_table");
    world.slow_name = python->text("_slow");
    Held functions(python->dict_new());
    for (py::MethodDefinition& d : definitions) {
        const Held name(python->text(d.name)), made(python->function_new(&d, nullptr, nullptr));
        if (!functions || !name || !made || python->dict_set(functions.get(), name.get(), made.get()) != 0) return nullptr;
    }
    return functions.release();
}
