# A small set does not carry 2 MiB of padding.
mkdir in
cp "$DATA/media/small.png" "$DATA/media/alpha.png" in/
coffer pack in small.mldf >/dev/null
test "$(wc -c <small.mldf)" -lt 8192 && echo "small.mldf is small"
coffer info small.mldf --json | grep -o '"page_size":[0-9]*'
printf '{"n": 1}\n' >one.jsonl
coffer convert one.jsonl one.mldf
test "$(wc -c <one.mldf)" -lt 8192 && echo "one.mldf is small"
coffer pack one.jsonl packed.mldf >/dev/null
test "$(wc -c <packed.mldf)" -lt 8192 && echo "packed.mldf is small"
coffer pack in large.mldf --page-size 2M >/dev/null
coffer info large.mldf --json | grep -o '"page_size":[0-9]*'
coffer append one.mldf packed.mldf >/dev/null
test "$(wc -c <one.mldf)" -lt 8192 && echo "one.mldf is small"
coffer check --full small.mldf one.mldf
