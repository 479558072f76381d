# A set comes back from JSON lines exactly: NaN, spacing of JSON, order of fields, odd values.
cat >set.py <<'EOF'
import json
lines = [
    {"late": None, "score": 1.5, "meta": {"a": 1}, "plain": "text", "note": None},
    {"late": "here", "score": 2.0, "meta": [1, 2], "plain": "", "note": None},
    {"late": None, "score": -0.0, "meta": {"b": None}, "plain": "x", "note": None},
]
for line in lines:
    print(json.dumps(line))
EOF
python3 set.py >in.jsonl
coffer convert in.jsonl a.mldf
# values that JSON lines cannot hold as they are
printf 'null' >null.json
printf '{"type": "bytes", "base64": "aGk="}' >looks.json
printf '[1,\n 2]' >lines.json
coffer set a.mldf 0.score=nan 1.score=-inf 0.meta=@null.json 1.meta=@looks.json 2.meta=@lines.json
coffer convert a.mldf b.jsonl
cat b.jsonl
coffer convert b.jsonl b.mldf
coffer diff a.mldf b.mldf && echo "the same samples"
coffer convert b.mldf c.jsonl
cmp b.jsonl c.jsonl && echo "the same lines"
coffer info b.mldf --json | grep -o '"name":"[a-z]*","type":"[a-z]*"'
for i in 0 1 2; do
    coffer get a.mldf $i.meta | cksum
    coffer get b.mldf $i.meta | cksum
done
echo "# for other programs"
coffer convert a.mldf - --to jsonl --field score --non-finite literal
coffer convert a.mldf - --to jsonl --field score --non-finite null
