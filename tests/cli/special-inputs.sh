# Verbs with files that are missing, empty, pipes, sockets, links or unreadable (special_files.py has the table).
DATA=$DATA python3 "$DATA/cli/special_files.py" inputs
