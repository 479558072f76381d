# The formats with their verbs.
coffer formats
coffer formats --json
