/* Credentials, region and endpoint of S3, from the same places where Amazon's own programs look. */
#ifndef COFFER_IO_REMOTE_AWS_SETTINGS_H
#define COFFER_IO_REMOTE_AWS_SETTINGS_H

#include "coffer/error.h"

typedef struct coffer__aws_settings {
    char *key_id, *secret; /* NULL: requests are not signed */
    char *token;           /* of temporary credentials, or NULL */
    char *region;          /* "us-east-1" when nothing names one */
    bool region_is_given;
    char *endpoint;  /* a URL, or NULL for Amazon's own */
    bool path_style; /* the bucket is in the path, not in the host name */
    bool requester_pays;
} coffer__aws_settings;

/* Environment first, then the files of the profile AWS_PROFILE ("default"): ~/.aws/credentials and
 * ~/.aws/config, or the files that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name. */
coffer_status coffer__aws_settings_load(coffer__aws_settings *out, coffer_error *err);
/* Continues in the region that S3 has named: the host name of Amazon's own endpoints changes with it. False
 * without memory. */
struct coffer__url;
bool coffer__aws_settings_move(coffer__aws_settings *settings, struct coffer__url *url, const char *region);
void coffer__aws_settings_free(coffer__aws_settings *settings);

#endif
