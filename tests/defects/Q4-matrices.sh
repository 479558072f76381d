# info -v shows preamble and slots as pycauset's summarize_container does.
coffer info -v "$DATA/compat/pycauset/float64.pycauset" | sed -n '/preamble/,/payload uuid/p'
coffer info --json -v "$DATA/compat/pycauset/float64.pycauset" | grep -o '"preamble":{[^}]*}'
coffer info "$DATA/compat/pycauset/float64.pycauset" | grep -c preamble
