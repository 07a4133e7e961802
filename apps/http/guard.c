/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: who may ask: tokens, certificates, and pages of other sites. */
#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "apps/http/web.h"
#include "base/whole_file.h"

#define FILE_BYTES_MAX 1048576
#define TOKEN_LEAST 16u
#define TOKEN_MOST 4096u

/* @secret: nobody but owner and group may read it. */
static int read_file(const char *option, const char *path, bool secret, char **ret)
{
    const struct whole_file f = {.folder = AT_FDCWD,
                                 .path = path,
                                 .bytes_max = FILE_BYTES_MAX,
                                 .refused = secret ? S_IRWXO : 0};
    size_t bytes;
    int r = whole_file_read(&f, ret, &bytes);

    if (r == WHOLE_FILE_E_OPEN) {
        return web_refuse(WEB_EXIT_CONFIG, "--%s %s: everybody may read it; chmod o= %s", option,
                          path, path);
    }
    return r ? web_refuse(WEB_EXIT_CONFIG, "--%s %s: %s", option, path, whole_file_why(r)) : 0;
}

int web_guard_token(const char *path, char **ret)
{
    int rc = read_file("token-file", path, true, ret);

    if (rc) {
        return rc;
    }
    (*ret)[strcspn(*ret, " \t\r\n")] = '\0';
    if (strlen(*ret) < TOKEN_LEAST || strlen(*ret) > TOKEN_MOST) {
        web_log("--token-file %s: a token has %u to %u characters, this one %zu", path, TOKEN_LEAST,
                TOKEN_MOST, strlen(*ret));
        free(base_take(*ret));
        return WEB_EXIT_CONFIG;
    }
    return 0;
}

static gnutls_datum_t datum(char *text)
{
    return (gnutls_datum_t){(unsigned char *)text, (unsigned)strlen(text)};
}

int web_guard_tls(const struct web_options *o, struct web_tls *ret)
{
    gnutls_certificate_credentials_t credentials;
    gnutls_datum_t cert, key, ca;
    int rc;

    if (!o->tls_cert) {
        return 0;
    }
    rc = read_file("tls-cert", o->tls_cert, false, &ret->cert);
    rc = rc ? rc : read_file("tls-key", o->tls_key, true, &ret->key);
    rc = rc || !o->tls_client_ca ? rc
                                 : read_file("tls-client-ca", o->tls_client_ca, false, &ret->ca);
    if (rc || gnutls_certificate_allocate_credentials(&credentials) < 0) {
        return WEB_EXIT_CONFIG;
    }
    cert = datum(ret->cert);
    key = datum(ret->key);
    rc = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    if (rc < 0) {
        web_log("--tls-cert %s, --tls-key %s: %s", o->tls_cert, o->tls_key, gnutls_strerror(rc));
    } else if (ret->ca) {
        ca = datum(ret->ca);
        rc = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
        rc = rc == 0 ? GNUTLS_E_NO_CERTIFICATE_FOUND : rc;
        if (rc < 0) {
            web_log("--tls-client-ca %s: %s", o->tls_client_ca, gnutls_strerror(rc));
        }
    }
    gnutls_certificate_free_credentials(credentials);
    return rc < 0 ? WEB_EXIT_CONFIG : 0;
}

/* The peer has shown a certificate for clients of one of the issuers. */
static bool has_certificate(const struct web_request *q)
{
    gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID,
                                     (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(q->http, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned status = 0;

    return info && info->tls_session &&
           gnutls_certificate_verify_peers(info->tls_session, &purpose, 1, &status) == 0 &&
           status == 0;
}

static bool has_token(const struct web_request *q, const char *token)
{
    const char *given = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Authorization");

    return given && strncasecmp(given, "Bearer ", 7) == 0 && strlen(given + 7) == strlen(token) &&
           gnutls_memcmp(given + 7, token, strlen(token)) == 0;
}

/* A name that a page of another site may have made point here (DNS rebinding) is none of these. */
static bool is_this_machine(const char *host)
{
    char name[WEB_HOST_BYTES];
    uint8_t address[16];

    if (!web_head_host(host, name)) {
        return false;
    }
    if (name[0] == '[') {
        name[strcspn(name, "]")] = '\0';
        return inet_pton(AF_INET6, name + 1, address) == 1;
    }
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1;
}

/* A page in a browser on this machine may send requests to this server, though it is from another
 * site. Browsers say so. */
static bool is_foreign_page(const struct web_request *q, const char *host)
{
    const char *origin = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Origin");
    const char *slashes = origin ? strstr(origin, "://") : NULL;

    return origin && (!slashes || !host || strcasecmp(slashes + 3, host) != 0);
}

bool web_guard_allows(const struct web_request *q, bool open, struct web_reply *r)
{
    const struct web_listener *l = q->listener;
    const struct web *w = l->web;
    const char *host = q->host;

    if (l->tls && w->o.tls_client_ca && !has_certificate(q)) {
        return web_fail(r, 403, "this server needs a certificate of the client (--tls-client-ca)");
    }
    if (w->token && !open && !has_token(q, w->token)) {
        return web_fail(r, 401, "this server needs its token: Authorization: Bearer TOKEN");
    }
    if (!l->local && !l->tls && !w->token && host && !is_this_machine(host)) {
        return web_fail(r, 403,
                        "without a token this server answers as localhost or by its IP address "
                        "only, not as %.64s",
                        host);
    }
    if (is_foreign_page(q, host)) {
        return web_fail(r, 403, "this request is from a page of another site");
    }
    return true;
}
