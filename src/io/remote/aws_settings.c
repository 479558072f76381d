#include "io/remote/aws_settings.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/remote/url.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_SETTINGS_FILE ((size_t)1 << 20)

static void free_secret(char *text)
{
    if (text)
        sodium_memzero(text, strlen(text));
    coffer__free(text);
}

void coffer__aws_settings_free(coffer__aws_settings *settings)
{
    coffer__free(settings->key_id);
    free_secret(settings->secret);
    free_secret(settings->token);
    coffer__free(settings->region);
    coffer__free(settings->endpoint);
    memset(settings, 0, sizeof *settings);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_yes(const char *text)
{
    return text && (strcasecmp(text, "yes") == 0 || strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

/* Keeps the first value that is found. */
static bool keep(char **slot, const char *value)
{
    if (!*slot && value && *value)
        *slot = coffer__strdup(value);
    return !value || !*value || *slot;
}

/* A small file as text with a NUL; "" when it does not exist. */
static coffer_status load_text(char **out, const char *path, coffer_error *err)
{
    coffer__buffer text;
    coffer__buffer_init(&text, MAX_SETTINGS_FILE);
    int fd = coffer__file_try_open(path, O_RDONLY, 0);
    coffer_status status = COFFER_OK;
    while (fd >= 0 && !status) {
        uint8_t chunk[4096];
        size_t got = 0;
        status = coffer__file_read_some(fd, chunk, sizeof chunk, &got, NULL, err);
        if (status || got == 0)
            break;
        coffer__buffer_append(&text, chunk, got);
        sodium_memzero(chunk, sizeof chunk);
    }
    if (fd >= 0)
        coffer__file_close(fd);
    coffer__buffer_append(&text, "", 1);
    if (!status && text.failed)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%s has more than 1 MiB", path);
    if (!status)
        *out = (char *)coffer__buffer_release(&text, NULL);
    coffer__buffer_free(&text);
    return status;
}

typedef struct ini_value {
    const char *key;
    char **slot;
} ini_value;

static char *trimmed(char *text)
{
    text += strspn(text, " \t\r");
    size_t len = strlen(text);
    while (len && strchr(" \t\r", text[len - 1]))
        text[--len] = '\0';
    return text;
}

/* "[default]", "[profile name]" */
static bool begins_section(char *line, const char *profile)
{
    char *end = strchr(line, ']');
    if (end)
        *end = '\0';
    const char *name = trimmed(line + 1);
    if (strncmp(name, "profile ", 8) == 0)
        name = trimmed(line + 1) + 8;
    return strcmp(name + strspn(name, " "), profile) == 0;
}

/* Fills the slots that are still empty from one section of an ini file. Indented lines belong to the key
 * before them (s3 = / addressing_style = path), whose own names do not clash with the others. */
static bool take_section(char *text, const char *profile, const ini_value *values, size_t count)
{
    bool inside = false, complete = true;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        line = trimmed(line);
        if (*line == '[') {
            inside = begins_section(line, profile);
            continue;
        }
        char *equals = strchr(line, '=');
        if (!inside || *line == '#' || *line == ';' || !equals)
            continue;
        *equals = '\0';
        for (size_t i = 0; i < count; i++)
            if (strcmp(trimmed(line), values[i].key) == 0)
                complete = keep(values[i].slot, trimmed(equals + 1)) && complete;
    }
    return complete;
}

static coffer_status take_file(const char *variable_name, const char *in_home, const char *profile,
                               const ini_value *values, size_t count, coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    const char *named = variable(variable_name), *home = variable("HOME");
    char *text = NULL;
    if (named)
        coffer__buffer_append(&path, named, strlen(named));
    else if (home)
        coffer__buffer_printf(&path, "%s/%s", home, in_home);
    coffer_status status = COFFER_OK;
    if (path.len)
        status = load_text(&text, coffer__buffer_text(&path), err);
    if (text && !take_section(text, profile, values, count))
        status = coffer__fail_no_memory(err, path.len);
    free_secret(text);
    coffer__buffer_free(&path);
    return status;
}

static bool take_environment(coffer__aws_settings *settings)
{
    bool complete = true;
    /* A key of the environment without its secret is not a pair with the secret of a file. */
    if (variable("AWS_ACCESS_KEY_ID") && variable("AWS_SECRET_ACCESS_KEY")) {
        complete = keep(&settings->key_id, variable("AWS_ACCESS_KEY_ID")) &&
                   keep(&settings->secret, variable("AWS_SECRET_ACCESS_KEY")) &&
                   keep(&settings->token, variable("AWS_SESSION_TOKEN"));
    }
    return complete && keep(&settings->region, variable("AWS_REGION")) &&
           keep(&settings->region, variable("AWS_DEFAULT_REGION")) &&
           keep(&settings->endpoint, variable("AWS_ENDPOINT_URL_S3")) &&
           keep(&settings->endpoint, variable("AWS_ENDPOINT_URL"));
}

static coffer_status take_files(coffer__aws_settings *settings, char **style, coffer_error *err)
{
    const char *profile = variable("AWS_PROFILE");
    char *key_id = NULL, *secret = NULL, *token = NULL;
    const ini_value values[] = {
        { "aws_access_key_id", &key_id },        { "aws_secret_access_key", &secret },
        { "aws_session_token", &token },         { "region", &settings->region },
        { "endpoint_url", &settings->endpoint }, { "addressing_style", style },
    };
    size_t count = sizeof values / sizeof values[0];
    if (!profile)
        profile = "default";
    coffer_status status =
        take_file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", profile, values, count, err);
    if (!status)
        status = take_file("AWS_CONFIG_FILE", ".aws/config", profile, values, count, err);
    if (!settings->key_id && key_id && secret) {
        settings->key_id = key_id;
        settings->secret = secret;
        settings->token = token;
        return status;
    }
    coffer__free(key_id);
    free_secret(secret);
    free_secret(token);
    return status;
}

/* "bucket.s3.OLD.amazonaws.com" */
static char *moved_host(const char *host, const char *old_region, const char *region)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    const char *at = strstr(host, ".amazonaws.com");
    size_t old_len = strlen(old_region);
    if (!at || (size_t)(at - host) < old_len || strncmp(at - old_len, old_region, old_len) != 0)
        return coffer__strdup(host);
    coffer__buffer_append(&name, host, (size_t)(at - host) - old_len);
    coffer__buffer_printf(&name, "%s%s", region, at);
    coffer__buffer_append(&name, "", 1);
    if (name.failed)
        coffer__buffer_free(&name);
    return (char *)coffer__buffer_release(&name, NULL);
}

bool coffer__aws_settings_move(coffer__aws_settings *settings, struct coffer__url *url, const char *region)
{
    char *copy = coffer__strdup(region);
    char *host = moved_host(url->host, settings->region, region);
    if (!copy || !host) {
        coffer__free(copy);
        coffer__free(host);
        return false;
    }
    coffer__free(settings->region);
    coffer__free(url->host);
    settings->region = copy;
    url->host = host;
    return true;
}

coffer_status coffer__aws_settings_load(coffer__aws_settings *out, coffer_error *err)
{
    coffer__aws_settings settings = { 0 };
    char *style = NULL;
    const char *virtual_hosts = variable("AWS_VIRTUAL_HOSTING"), *payer = variable("AWS_REQUEST_PAYER");
    bool complete = take_environment(&settings);
    coffer_status status = take_files(&settings, &style, err);
    settings.region_is_given = settings.region != NULL;
    complete = keep(&settings.region, "us-east-1") && complete;
    if (!status && !complete)
        status = coffer__fail_no_memory(err, 64);
    if (is_yes(variable("AWS_NO_SIGN_REQUEST"))) {
        coffer__free(settings.key_id);
        free_secret(settings.secret);
        settings.key_id = settings.secret = NULL;
    }
    /* Servers that are not Amazon's rarely have a name for each bucket. */
    settings.path_style = settings.endpoint != NULL;
    if (style)
        settings.path_style = strcmp(style, "path") == 0 || (strcmp(style, "auto") == 0 && settings.endpoint);
    if (virtual_hosts)
        settings.path_style = !is_yes(virtual_hosts);
    settings.requester_pays = payer && strcmp(payer, "requester") == 0;
    coffer__free(style);
    if (status)
        coffer__aws_settings_free(&settings);
    else
        *out = settings;
    return status;
}
