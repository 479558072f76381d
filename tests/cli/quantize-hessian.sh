# Second moments of a layer's inputs: which tensors have them, and what is refused.
# A safetensors file: the text of its header, then its data.
write() { printf "\\$(printf '%03o' ${#1})\0\0\0\0\0\0\0%s" "$1" && cat; }
printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\200\100' |
    write '{"a.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}}' >model.safetensors
# The moments of "a": [[1, ELEMENT], [ELEMENT, 1]] from 3 samples.
moments() {
    printf '\003\000\000\000\000\000\000\000\000\000\200\077%b%b\000\000\200\077' "$1" "$2" |
        write '{"a.count":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"a.moments":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]}}'
}
half='\000\000\000\077' two='\000\000\000\100' nan='\000\000\300\177'
moments $half $half >moments.safetensors
coffer quantize model.safetensors out.mcf --type q4 --hessian moments.safetensors
coffer info out.mcf | sed -n '/quality/,$p' | sed -n '/fit/p;/calibrated/p;/importance/p'
coffer check --full out.mcf --against model.safetensors
coffer quantize model.safetensors --dry-run --type q4 --hessian moments.safetensors --json | sed 's/.*"moments"/"moments"/'
try() { coffer quantize model.safetensors --dry-run --type q4 --hessian "$@"; echo "exit $?"; }
moments $half $two >lopsided.safetensors
try lopsided.safetensors
moments $two $two >large.safetensors
try large.safetensors
moments $nan $nan >nan.safetensors
try nan.safetensors
try model.safetensors
try nowhere.safetensors
try moments.safetensors --include b
try moments.safetensors --method absmax
head -c 100 moments.safetensors >short.safetensors
try short.safetensors
coffer quantize model.safetensors moments.safetensors --type q4 --hessian moments.safetensors --force
echo "exit $?"
