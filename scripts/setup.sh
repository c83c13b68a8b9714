#!/usr/bin/env bash
# Installs what scripts/dependencies.txt names and this machine lacks. Says nothing when there is nothing to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
list=scripts/dependencies.txt
environment=.deps/venv
mkdir -p .deps

# Two runs at once (a person and a CI job, say) must not install over one another.
exec 9>.deps/setup.lock
if command -v flock >/dev/null; then flock 9; fi

named() { awk -v kind="$1" '$1 == kind { print $2 }' "$list"; }

missing=()
if command -v dpkg-query >/dev/null; then
    while read -r package; do
        dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done < <(named apt)
fi
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "setup: these packages are missing and there is no sudo: ${missing[*]}" >&2
            echo "  fix: as root, apt-get install ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    echo "setup: installing ${missing[*]}"
    log=.deps/apt.log
    if ! { "${as_root[@]}" apt-get update -q &&
           "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "setup: apt-get failed; the whole log is $log" >&2
        exit 1
    fi
fi

# The Python below any environment that happens to be active: ours must not be built from itself.
python=$(python3 -c 'import sys; print(getattr(sys, "_base_executable", None) or sys.executable)')
# The stamp holds what was installed: a changed pin or another Python rebuilds the environment.
wanted=$( (named pypi; named pypi-alone; "$python" --version) | sha256sum | cut -d' ' -f1)
if [ "$(cat "$environment/.installed" 2>/dev/null || true)" != "$wanted" ]; then
    echo "setup: installing Python packages into $environment"
    log=.deps/pip.log
    rm -rf "$environment"
    if ! { "$python" -m venv "$environment" &&
           named pypi | "$environment/bin/python" -m pip install --disable-pip-version-check -q -r /dev/stdin &&
           named pypi-alone | "$environment/bin/python" -m pip install --disable-pip-version-check -q --no-deps -r /dev/stdin; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "setup: installing Python packages failed; the whole log is $log" >&2
        exit 1
    fi
    echo "$wanted" >"$environment/.installed"
fi
