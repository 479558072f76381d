# The index of a trace has the mode of the trace.
umask 022
printf 'main;work 100\n' >a.collapsed
coffer convert a.collapsed private.mlyze
stat -c '%a %n' private.mlyze private.mlyze.idx
chmod 600 private.mlyze
rm private.mlyze.idx
coffer timeline private.mlyze --csv >/dev/null
coffer info private.mlyze >/dev/null
coffer compress private.mlyze
stat -c '%a %n' private.mlyze private.mlyze.idx
chmod 640 private.mlyze
rm private.mlyze.idx
coffer compress private.mlyze
stat -c '%a %n' private.mlyze private.mlyze.idx
