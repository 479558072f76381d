# A pipe is read once, however often a verb opens its input, and a pipe that is written to is not read again.
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
cp "$DATA/compat/mcf/hf-folder/model.safetensors" .
cp "$DATA/compat/pycauset/float64.pycauset" matrix.pycauset
cp "$DATA/compat/mscan/scanner-io-two-appends.mscan" scan.mscan
cp "$DATA/compat/mlyze-tools/grow.heaptrack.zst" trace.heaptrack
coffer convert -q trace.heaptrack trace.mlyze 2>/dev/null
mkfifo pipe
run() { # FILE, then the words of the command; FILE comes through the pipe
    echo "\$ coffer $2 ($1)"
    cat "$1" >pipe &
    shift
    timeout 20 coffer "$@" >out 2>&1
    echo "exit $?"
    kill $! 2>/dev/null
    wait
    sed -n 1p out | cut -c1-100
}
exec 2>&1
run model.safetensors info pipe
run model.safetensors check --full pipe
run model.safetensors stats pipe
run model.safetensors repair pipe -o repaired.safetensors
run model.safetensors diff pipe model.mcf
run model.mcf get pipe model.norm.weight --rows 0..1 -o norm.csv
run model.mcf diff pipe model.safetensors
run model.mcf repair pipe -o repaired.mcf
run model.mcf unpack pipe folder
run model.mcf quantize pipe small.mcf --type q8
cp model.safetensors 3fa90c
coffer pack -q 3fa90c from-cache.mcf | cut -d, -f1
run matrix.pycauset repair pipe -o repaired.pycauset
run scan.mscan diff pipe scan.mscan
run trace.mlyze compress pipe -o smaller.mlyze
run trace.heaptrack peak pipe
run matrix.pycauset revert pipe
run scan.mscan set pipe model_name=x
echo "--- standard input"
coffer repair - -o from-stdin.safetensors <model.safetensors
coffer unpack - from-stdin <model.mcf
cmp from-stdin/model.safetensors model.safetensors
echo "--- output"
timeout 20 coffer repair model.mcf -o /dev/stdout 2>/dev/null | cmp - model.mcf
timeout 20 coffer compress trace.mlyze -o - >stream.mlyze 2>/dev/null
timeout 20 coffer compress trace.mlyze -o /dev/stdout 2>/dev/null | cmp - stream.mlyze
timeout 20 coffer repair model.safetensors -o /dev/stdout 2>/dev/null | head -c 8 | od -An -tx1
timeout 20 coffer compact matrix.pycauset -o /dev/stdout 2>/dev/null | head -c 8
echo
