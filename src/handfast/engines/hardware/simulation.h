// Drives a Verilated circuit: feeds its input streams, drains its output streams and records probes, cycle by cycle.
//
// The names of the ports come from a small generated file, which includes this one and defines `shape`, `offer`, `take`
// and `clock`.
// A cycle: inputs are set, the circuit settles, a word moves where valid and ready are both 1, and the clock rises.
#pragma once
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Bits of a port to and from 64-bit words, the lowest first. Verilator keeps up to 64 bits in one integer, more in
// an array of 32-bit words.
template <class T>
void put(T& port, const uint64_t* words) { port = static_cast<T>(*words); }

template <std::size_t N>
void put(VlWide<N>& port, const uint64_t* words) {
    for (std::size_t i = 0; i < N; ++i) port[i] = static_cast<uint32_t>(words[i / 2] >> (i % 2 * 32));
}

template <class T>
void get(const T& port, uint64_t* words) { *words = static_cast<uint64_t>(port); }

template <std::size_t N>
void get(const VlWide<N>& port, uint64_t* words) {
    for (std::size_t i = 0; i < (N + 1) / 2; ++i) words[i] = 0;
    for (std::size_t i = 0; i < N; ++i) words[i / 2] |= static_cast<uint64_t>(port[i]) << (i % 2 * 32);
}

// Values, each with the cycle in which it was seen.
struct Record {
    int width = 1;  // words a value
    std::vector<uint64_t> values;
    std::vector<uint64_t> cycles;

    template <class T>
    void add(uint64_t cycle, const T& port) {
        values.resize(values.size() + width);
        get(port, values.data() + values.size() - width);
        cycles.push_back(cycle);
    }
};

// A stream into the circuit: each word is offered from its cycle on, until it is taken.
struct Source {
    int width = 1;
    const uint64_t* words = nullptr;
    const uint64_t* at = nullptr;  // the first cycle of each word, or null: as soon as possible
    uint64_t count = 0;
    uint64_t next = 0;
    bool offered = false;
    std::vector<uint64_t> cycles;  // when each was taken
    std::vector<uint64_t> nothing;

    bool waits(uint64_t cycle) const { return next < count && at && at[next] > cycle; }

    template <class P, class V>
    void offer(uint64_t cycle, P& payload, V& valid) {
        offered = next < count && !waits(cycle);
        valid = offered;
        put(payload, offered ? words + next * width : nothing.data());
    }

    template <class R>
    bool take(uint64_t cycle, const R& ready) {
        if (!offered || !ready) return false;
        cycles.push_back(cycle);
        ++next;
        return true;
    }
};

// A stream out of the circuit: ready as the pattern says, over and over.
struct Sink {
    Record record;
    const uint8_t* pattern = nullptr;  // null: always ready
    uint64_t length = 0;
    bool is_ready = true;

    template <class R>
    void offer(uint64_t cycle, R& ready) {
        is_ready = !pattern || pattern[cycle % length];
        ready = is_ready;
    }

    template <class P, class V>
    bool take(uint64_t cycle, const P& payload, const V& valid) {
        if (!valid || !is_ready) return false;
        record.add(cycle, payload);
        return true;
    }
};

// An input that belongs to no stream: a value each cycle, the last one for ever.
struct Level {
    int width = 1;
    const uint64_t* values = nullptr;
    uint64_t count = 0;

    template <class T>
    void offer(uint64_t cycle, T& port) {
        if (cycle < count) put(port, values + cycle * width);
    }
};

// A signal that is looked at: recorded in cycle 0 and when it changes.
struct Probe {
    Record record;
    std::vector<uint64_t> now;

    template <class T>
    void take(uint64_t cycle, const T& port) {
        get(port, now.data());
        const std::size_t width = now.size();
        const auto& seen = record.values;
        if (seen.empty() || std::memcmp(seen.data() + seen.size() - width, now.data(), width * 8) != 0)
            record.add(cycle, port);
    }
};

struct Simulation;
// The generated part.
static void shape(Simulation& simulation);  // as many sources, sinks, levels and probes as the circuit has, and their widths
static void offer(Simulation& simulation);
static bool take(Simulation& simulation);  // whether a word moved
static void clock(Vcircuit& circuit, bool up);

// What the circuit prints and the assertion that failed; kept by the runtime (runtime.cpp).
extern thread_local std::string circuit_said;
extern thread_local bool circuit_stopped;

enum Status { RUNNING = 0, QUIET = 1, STOPPED = 2 };

struct Simulation {
    VerilatedContext context;
    Vcircuit circuit{&context, "top"};
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> trace;
#endif
    std::vector<Source> sources;
    std::vector<Sink> sinks;
    std::vector<Level> levels;
    std::vector<Probe> probes;
    uint64_t cycle = 0;
    uint64_t idle = 0;  // cycles in which no word moved and none waited for its time
    std::string said;
    // In the place of a valid or a ready that is no port.
    uint8_t absent = 0;
    const uint8_t always = 1;

    explicit Simulation(const char* waveform) {
        shape(*this);
        for (auto& source : sources) source.nothing.resize(source.width);
        for (auto& probe : probes) probe.now.resize(probe.record.width);
#if VM_TRACE
        if (waveform) {
            context.traceEverOn(true);
            trace.reset(new VerilatedVcdC);
            circuit.trace(trace.get(), 99);
            trace->open(waveform);
        }
#endif
    }

    ~Simulation() {
        circuit.final();
#if VM_TRACE
        if (trace) trace->close();
#endif
    }

    void settle(uint64_t half) {
        circuit.eval();
#if VM_TRACE
        if (trace) trace->dump(cycle * 2 + half);
#endif
    }

    // At most `cycles` more; with `quiet`, only until that many have passed in which nothing moved.
    Status run(uint64_t cycles, uint64_t quiet) {
        circuit_said.clear();
        circuit_stopped = false;
        for (const uint64_t end = cycle + cycles; cycle < end;) {
            offer(*this);
            clock(circuit, false);
            settle(0);
            bool moved = take(*this);
            for (const auto& source : sources) moved |= source.waits(cycle);
            idle = moved ? 0 : idle + 1;
            clock(circuit, true);
            settle(1);
            if (circuit_stopped) return STOPPED;
            ++cycle;
            if (quiet && idle >= quiet) return QUIET;
        }
        return RUNNING;
    }

    Record& record(int kind, int index) { return kind == 0 ? sinks[index].record : probes[index].record; }
};

EXPORTED Simulation* simulation_open(const char* waveform) { return new Simulation(waveform); }
EXPORTED void simulation_close(Simulation* it) { delete it; }

EXPORTED void simulation_feed(Simulation* it, int index, const uint64_t* words, uint64_t count, const uint64_t* at) {
    auto& source = it->sources[index];
    source.words = words;
    source.count = count;
    source.at = at;
}

EXPORTED void simulation_ready(Simulation* it, int index, const uint8_t* pattern, uint64_t length) {
    it->sinks[index].pattern = pattern;
    it->sinks[index].length = length;
}

EXPORTED void simulation_level(Simulation* it, int index, const uint64_t* values, uint64_t count) {
    it->levels[index].values = values;
    it->levels[index].count = count;
}

EXPORTED int simulation_run(Simulation* it, uint64_t cycles, uint64_t quiet) {
    try {
        const Status status = it->run(cycles, quiet);
        it->said = circuit_said;
        return status;
    } catch (const std::exception& error) {  // out of memory; none may reach Python
        it->said = error.what();
        return STOPPED;
    }
}

EXPORTED const char* simulation_said(Simulation* it) { return it->said.c_str(); }
EXPORTED uint64_t simulation_cycle(Simulation* it) { return it->cycle; }
EXPORTED uint64_t simulation_taken(Simulation* it, int index, const uint64_t** cycles) {
    *cycles = it->sources[index].cycles.data();
    return it->sources[index].cycles.size();
}

// kind 0: an output stream; 1: a probe.
EXPORTED uint64_t simulation_record(Simulation* it, int kind, int index, const uint64_t** values, const uint64_t** cycles) {
    const auto& record = it->record(kind, index);
    *values = record.values.data();
    *cycles = record.cycles.data();
    return record.cycles.size();
}
