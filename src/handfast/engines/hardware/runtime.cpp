// Verilator's runtime in one piece, which keeps what a circuit prints and does not end the process when one stops.
#include <cstdarg>
#include <cstdio>
#include <string>

thread_local std::string circuit_said;
thread_local bool circuit_stopped = false;

static int keep(const char* format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (circuit_said.size() < 100000) circuit_said += text;
    return length;
}

#define VL_PRINTF keep
#define VL_USER_STOP
#define VL_USER_FATAL
#include "verilated.cpp"
#include "verilated_threads.cpp"
#include "verilated_vcd_c.cpp"

// A failed assertion; the simulation ends after this cycle.
void vl_stop(const char*, int, const char*) VL_MT_UNSAFE { circuit_stopped = true; }

void vl_fatal(const char*, int, const char*, const char* message) VL_MT_UNSAFE {
    keep("%s\n", message);
    circuit_stopped = true;
}
