# Changes to the metadata, one commit a command; the payload stays as it is.
cp "$DATA/vectors/pycauset/dense-f64.pycauset" m.pycauset
payload() { tail -c +4097 m.pycauset | head -c 120 | cksum; }
payload
coffer set m.pycauset properties.label='first run' properties.beta=0.5 properties.runs=12 properties.offset=-3 \
    properties.good=true properties.version=1.10.2
coffer get m.pycauset properties
coffer set m.pycauset --string properties.version=1.10 --int properties.n=7 --uint properties.u=18446744073709551615 \
    --float properties.f=3 --bool properties.b=false --bytes-hex properties.blob=00fFa1 \
    --json 'properties.tags=["a", {"deep": [1, -2, 2.5]}]' 'properties.odd=a=b' --string properties.empty=
coffer get m.pycauset properties
coffer get m.pycauset properties.blob
echo "# kinds stay what they were said to be"
coffer set m.pycauset --float properties.nan=nan --float properties.inf=-inf
coffer get m.pycauset properties.nan
coffer get m.pycauset properties.inf
coffer get m.pycauset properties.f

echo "# in the order of the words"
coffer set m.pycauset --delete properties properties.only=1
coffer get m.pycauset properties
coffer set m.pycauset properties.only=2 -d properties.only properties.other=3
coffer get m.pycauset properties

echo "# cached results belong to payload and view"
coffer set m.pycauset --cached trace=2.5
coffer get m.pycauset cached.trace
coffer set m.pycauset view.is_transposed=true
coffer get m.pycauset cached.trace 2>&1
coffer info m.pycauset | grep -E 'rows|cols|stale'
coffer set m.pycauset view.is_transposed=false
coffer get m.pycauset cached.trace

echo "# the report, durability, checksums"
coffer set m.pycauset properties.a=1 --json
coffer set m.pycauset --json properties.a='{"b": 2}' --json
coffer set --json m.pycauset properties.c='[1, 2]'
coffer get m.pycauset properties.c.1
coffer set --string m.pycauset properties.c=1
coffer get m.pycauset properties.c --json
coffer set m.pycauset properties.a=2 --durability ordered
coffer set m.pycauset properties.a=3 --durability none
coffer set m.pycauset --checksum
coffer check --full m.pycauset
payload
printf x | dd of=m.pycauset bs=1 seek=4100 conv=notrunc 2>/dev/null
coffer check m.pycauset
coffer check --full m.pycauset
ls
