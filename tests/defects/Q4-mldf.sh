# info -v shows the pointers of the header, which the tutorial's validate_file returns, and the checksums.
coffer info -v "$DATA/vectors/mldf/checksummed.mldf" | sed -n '/^ *header/,$p'
coffer info -v --json "$DATA/vectors/mldf/checksummed.mldf" | grep -o '"header":.*'
coffer info "$DATA/vectors/mldf/checksummed.mldf" --json | grep -c data_ptr
printf '%064d\n' 7 >key
echo '{"text": "secret"}' >list.jsonl
coffer pack list.jsonl set.mldf --encrypt --key-file key --page-size 4K >/dev/null
coffer info -v --json set.mldf | grep -o '"guard":.*' | sed 's/"file_id":"[0-9a-f]\{32\}"/"file_id":"…"/'
