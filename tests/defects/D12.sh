# A small set does not carry 2 MiB of padding.
mkdir in
cp "$DATA/media/small.png" "$DATA/media/alpha.png" in/
coffer pack in small.mldf >/dev/null
wc -c <small.mldf
coffer info small.mldf --json | grep -o '"page_size":[0-9]*'
printf '{"n": 1}\n' >one.jsonl
coffer convert one.jsonl one.mldf
wc -c <one.mldf
coffer pack one.jsonl packed.mldf >/dev/null
wc -c <packed.mldf
coffer pack in large.mldf --page-size 2M >/dev/null
coffer info large.mldf --json | grep -o '"page_size":[0-9]*'
coffer append one.mldf packed.mldf >/dev/null
wc -c <one.mldf
coffer check --full small.mldf one.mldf
