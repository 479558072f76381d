# make check-all runs every fuzz target under the sanitizers of clang.
cd "$DATA/.." || exit 1
make -n BOOTSTRAP=true check-all | grep -c 'cmake --build --preset fuzz'
grep -c 'fsanitize=fuzzer' CMakePresets.json | sed 's/[1-9][0-9]*/yes/'
for source in fuzz/fuzz_*.c; do
    grep -q LLVMFuzzerTestOneInput "$source" fuzz/*_import.h || echo "$source has no target"
done
