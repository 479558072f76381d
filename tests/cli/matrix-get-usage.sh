# What cannot be had.
exec 2>&1
m=$DATA/vectors/pycauset
mkdir folder
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
say get "$m/dense-f64.pycauset" properties.label
say get "$m/dense-f64.pycauset" rows.more
say get "$m/dense-f64.pycauset" ''
say get "$m/dense-f64.pycauset" 3,0
say get "$m/dense-f64.pycauset" 0,5
say get "$m/dense-f64.pycauset" 2..1
say get "$m/dense-f64.pycauset" 1,2,3
say get "$m/dense-f64.pycauset" 1x
say get "$m/dense-f64.pycauset" 18446744073709551616
say get "$m/dense-f64.pycauset" rows --as npy
say get "$m/dense-f64.pycauset" 1 --as nothing
say get "$m/dense-f64.pycauset" 1 --json
say get "$m/dense-f64.pycauset" 1 --generation 2
say get "$m/dense-f64.pycauset" rows --generation x
say get "$m/dense-f64.pycauset" rows --tokens 1
say get "$m/dense-f64.pycauset" rows --part real
say get "$m/complex-f64.pycauset" 9,0
say get "$m/dense-f64.pycauset" rows -o nowhere/x
say get "$m/newest-metadata-corrupt.pycauset" rows
say get "$m/both-slots-corrupt.pycauset" rows
say get folder rows
say get missing.pycauset rows
ls
