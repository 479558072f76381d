# Types by quality, by the size of the file and by names of llama.cpp; the report says where the bits go.
folder=$DATA/compat/mcf/hf-folder
coffer quantize "$folder" --min-snr 20 --dry-run
coffer quantize "$folder" --max-error 0.02 --dry-run
coffer quantize "$folder" small.mcf --max-size 26K | tail -1
test "$(wc -c <small.mcf)" -le 26624 && echo "at most 26 KiB"
coffer quantize "$folder" --type Q4_K_M --type '*k_proj*=q8' --dry-run
coffer quantize "$folder" --type q8_0 --dry-run --json | sed 's/.*"small_scales"/"small_scales"/'
try() { coffer quantize "$folder" --dry-run "$@"; echo "exit $?"; }
try --max-size 1K
try --max-size 26K --min-snr 20
try --type Q4_K_M --target-bpw 4
try --type k4 --type Q4_K_M
try --type '*proj*=Q4_K_M'
try --type Q5_K_M
try --min-snr -3
try --max-error 2
