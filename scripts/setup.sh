#!/usr/bin/env bash
# Set up everything handfast needs to be run, tested and developed:
#   1. Java 17+, which Spark runs on   2. a C++ compiler, which simulators of circuits are built with
#   3. .venv   4. the packages, at the versions of requirements.lock
# Says what it does and why; does nothing when nothing has changed. PYTHON and JAVA_HOME are respected.
set -euo pipefail
cd "$(dirname "$0")/.."

extras="connect,hardware,bench,dev"
java_needed=17
stamp=.venv/.handfast-setup

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$@" >&2; exit 1; }

can_apt() { [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; }

# Install the first of the named packages that this release of Debian has.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq </dev/null
    local package
    for package in "$@"; do
        if apt-get install --simulate "$package" </dev/null >/dev/null 2>&1; then
            say "apt-get install $package"
            apt-get install -qq -y --no-install-recommends "$package" </dev/null >/dev/null
            return
        fi
    done
    fail "This release of Debian has none of the packages $*"
}

# The java that Spark would start.
java_path() { if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else command -v java || true; fi; }

# Its major version; 0 if it does not run.
java_version() {
    local major
    major=$("$1" -version 2>&1 </dev/null | sed -n 's/.* version "\(1\.\)*\([0-9]*\).*/\2/p' | head -n 1) || true
    echo "${major:-0}"
}

java_ok() { [ -x "$1" ] && [ "$(java_version "$1")" -ge "$java_needed" ]; }

ensure_java() {
    local java found
    java=$(java_path)
    if java_ok "$java"; then return; fi

    if [ -n "${JAVA_HOME:-}" ]; then
        fail "JAVA_HOME is $JAVA_HOME, which holds no Java $java_needed or newer; Spark needs one" \
             "Point JAVA_HOME at a newer Java, or unset it to use the java on the PATH"
    fi
    if [ -z "$java" ]; then found="there is no java on the PATH"; else found="$java is Java $(java_version "$java")"; fi
    say "Spark needs Java $java_needed or newer, and $found"
    if ! can_apt; then
        fail "Install Java $java_needed or newer and run again, or set JAVA_HOME if you have one elsewhere" \
             "  Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
             "  Fedora:         sudo dnf install java-21-openjdk-headless" \
             "  macOS:          brew install openjdk@17"
    fi
    apt_install openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless
    hash -r
    java=$(java_path)
    if ! java_ok "$java"; then
        fail "Java is installed now, but $java comes first on the PATH and is too old" \
             "Set JAVA_HOME to one of: $(echo /usr/lib/jvm/java-*)"
    fi
}

# The compiler that Verilator's C++ goes through: CXX, or g++. Nothing else is needed: no make, no system Verilator.
compiler_path() { command -v "${CXX:-g++}" || true; }

ensure_compiler() {
    if [ -n "$(compiler_path)" ]; then return; fi
    if [ -n "${CXX:-}" ]; then
        fail "CXX is $CXX, which is no program on the PATH; simulators of circuits are built with it" \
             "Point CXX at a C++ compiler, or unset it to use g++"
    fi
    say "Simulators of circuits are built with g++, and there is no g++ on the PATH"
    if ! can_apt; then
        fail "Install g++ and run again, or set CXX if you have another C++ compiler" \
             "  Debian, Ubuntu: sudo apt-get install g++" \
             "  Fedora:         sudo dnf install gcc-c++" \
             "  macOS:          xcode-select --install"
    fi
    apt_install g++
    hash -r
}

# The Python to build .venv from: $PYTHON, else the version handfast is tested with, else any new enough.
find_python() {
    local python
    for python in ${PYTHON:-python3.11 python3 python3.12 python3.13}; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
    fail "Python 3.11 or newer is needed, and was not found as ${PYTHON:-python3.11, python3, python3.12 or python3.13}" \
         "Install it, or name it: PYTHON=/path/to/python3.11 make"
}

ensure_venv() {
    if .venv/bin/python -m pip --version >/dev/null 2>&1; then return; fi
    local python package
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        say "$python cannot make virtual environments: Debian keeps that in $package"
        can_apt || fail "Install it and run again: sudo apt-get install $package"
        apt_install "$package" python3-venv
    fi
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

install_packages() {
    local quiet=--quiet
    if [ -t 1 ]; then quiet=; fi
    say "installing handfast[$extras] at the versions of requirements.lock (minutes the first time: Spark alone is 450 MB)"
    .venv/bin/python -m pip install $quiet --disable-pip-version-check --use-pep517 -c requirements.lock -e ".[$extras]" </dev/null
}

# What the last set-up was made from. The same again: nothing to do.
key() { echo "$(cat pyproject.toml requirements.lock scripts/setup.sh | cksum) $(java_path) $(compiler_path)"; }

if [ -x "$(java_path)" ] && [ -n "$(compiler_path)" ] && [ -x .venv/bin/handfast ] && [ "$(key)" = "$(cat $stamp 2>/dev/null)" ]; then exit; fi
ensure_java
ensure_compiler
ensure_venv
install_packages
key >$stamp
say "ready"
