# What quantize refuses, and what it says to do next.
folder=$DATA/compat/mcf/hf-folder
try() { coffer quantize "$@"; echo "exit $?"; }
try "$folder" out.mcf
try "$folder" --type k4
try "$folder" out.mcf --type k5
try "$folder" out.mcf --type '*nothing*=k4'
try "$folder" out.mcf --type k4 --target-bpw 4
try "$folder" out.mcf --target-bpw 1
try "$folder" out.mcf --target-bpw none
try "$folder" out.mcf --type k4 --domain activations
try "$folder" out.mcf --type int8 --clip 5
try "$folder" out.mcf --type k4 --weights "$folder/config.json"
try "$folder" out.mcf --type k4 --weights "$folder/model.safetensors"
try "$folder" out.mcf --type k4 --weights nowhere.npy
try "$folder" out.mcf --type k4 --method absmax --weights "$folder/model.safetensors"
try nowhere out.mcf --type k4
printf '\070\000\000\000\000\000\000\000{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}\000\000\200\077\000\000\300\177' >nan.safetensors
try nan.safetensors out.mcf --type k4
try nan.safetensors out.mcf --type k4 --nan zero
try out.mcf out.mcf --type k2 --force
coffer check small.mcf --against "$folder"
echo "exit $?"
ls
