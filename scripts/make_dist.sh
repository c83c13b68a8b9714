#!/usr/bin/env bash
# make_dist.sh BUILD TO: a folder with the program, the library, kernels and every shared library they need beyond the C and
# C++ run time, and the headers that CuTe kernels include; it works wherever it is copied.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
to=$2
rm -rf "$to"
cmake --install "$build" --prefix "$to" --strip >"$build/install.log" || { cat "$build/install.log" >&2; exit 1; }

# The base system's own libraries must come from the machine it runs on.
base='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libresolv)\.so'
for file in "$to/bin/tilewright" "$to/lib/libtilewright.so"; do
    # From the build tree: the installed copy cannot find them yet.
    original="$build/$(basename "$(dirname "$file")")/$(basename "$file")"
    ldd "$original" | awk '$2 == "=>" && $3 != "" { print $1, $3 }' | while read -r name path; do
        if [[ ! $name =~ $base ]]; then
            if [ "$path" = not ]; then echo "make_dist: $name, needed by $file, was not found" >&2; exit 1; fi
            cp -Lf "$path" "$to/lib/$name"
        fi
    done
done

# CuTe kernels are compiled against CUTLASS's headers: what they need of them lies where the program looks first.
for packages in .deps/venv/lib/python3*/site-packages; do
    if [ -f "$packages/cutlass_library/source/include/cute/tensor.hpp" ]; then
        python3 scripts/cutlass_headers.py "$packages/cutlass_library/source/include" "$to/share/cutlass/include" >/dev/null
        cp "$packages"/nvidia_cutlass-*.dist-info/licenses/LICENSE.txt "$to/share/cutlass/LICENSE.txt"
    fi
done
"$to/bin/tilewright" --version
du -sh "$to" | cut -f1
