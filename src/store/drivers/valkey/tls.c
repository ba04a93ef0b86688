/* TLS by OpenSSL, over a socket that does not block. */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "store/drivers/valkey/net.h"

#define RECORD_SIZE ((size_t)16 << 10)

struct vk_tls {
    SSL_CTX *context;
    BIO_METHOD *method;
    SSL *ssl;
    int fd;
    uint8_t record[RECORD_SIZE]; /* small pieces go out together */
};

/* --- the socket, as OpenSSL sees it: its own way of writing raises SIGPIPE --- */

static int bio_result(BIO *bio, ssize_t n, bool writing)
{
    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        if (writing)
            BIO_set_retry_write(bio);
        else
            BIO_set_retry_read(bio);
    }
    return (int)n;
}

static int bio_write(BIO *bio, const char *bytes, int n)
{
    struct vk_tls *tls = BIO_get_data(bio);

    return bio_result(bio, send(tls->fd, bytes, (size_t)n, MSG_NOSIGNAL), true);
}

static int bio_read(BIO *bio, char *bytes, int n)
{
    struct vk_tls *tls = BIO_get_data(bio);

    return bio_result(bio, recv(tls->fd, bytes, (size_t)n, 0), false);
}

static long bio_ctrl(BIO *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH;
}

static bool make_method(struct vk_tls *tls)
{
    tls->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "belay");
    return tls->method && BIO_meth_set_write(tls->method, bio_write) &&
           BIO_meth_set_read(tls->method, bio_read) &&
           BIO_meth_set_ctrl(tls->method, bio_ctrl);
}

/* --- shaking hands --- */

static belay_rc refused(const char *what, struct belay_error *err)
{
    unsigned long code = ERR_peek_error();
    const char *why = code ? ERR_reason_error_string(code) : NULL;
    belay_rc rc = err_reason(err, BELAY_UNAVAILABLE, "tls", "valkey: TLS: %s%s%s", what,
                             why ? ": " : "", why ? why : "");

    ERR_clear_error();
    return rc;
}

static belay_rc take_files(struct vk_tls *tls, const struct valkey_options *o,
                           struct belay_error *err)
{
    if (o->tls_ca ? !SSL_CTX_load_verify_locations(tls->context, o->tls_ca, NULL)
                  : !SSL_CTX_set_default_verify_paths(tls->context))
        return refused("tls_ca cannot be read", err);
    if (o->tls_cert &&
        SSL_CTX_use_certificate_chain_file(tls->context, o->tls_cert) != 1)
        return refused("tls_cert cannot be read", err);
    const char *key = o->tls_key ? o->tls_key : o->tls_cert;
    if (key && SSL_CTX_use_PrivateKey_file(tls->context, key, SSL_FILETYPE_PEM) != 1)
        return refused("tls_key cannot be read", err);
    return BELAY_OK;
}

/* Whom we expect: by name, or by address. */
static bool expect(struct vk_tls *tls, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    ERR_clear_error();
    return SSL_set_tlsext_host_name(tls->ssl, host) == 1 &&
           SSL_set1_host(tls->ssl, host) == 1;
}

static belay_rc make_ssl(struct vk_tls *tls, const struct valkey_options *o,
                         const char *host, struct belay_error *err)
{
    const char *name = o->tls_server_name ? o->tls_server_name : host;

    tls->context = SSL_CTX_new(TLS_client_method());
    if (!tls->context || !make_method(tls))
        return err_no_memory(err, "TLS");
    (void)SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    (void)SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                             SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    belay_rc rc = take_files(tls, o, err);
    if (rc)
        return rc;
    tls->ssl = SSL_new(tls->context);
    BIO *bio = tls->ssl ? BIO_new(tls->method) : NULL;
    if (!bio)
        return err_no_memory(err, "TLS");
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_verify(tls->ssl, o->tls_insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    /* A socket in the file system has no name of its own. */
    if (name[0] != '/' && !expect(tls, name))
        return refused("the server's name cannot be used", err);
    return BELAY_OK;
}

static belay_rc handshake_failed(struct vk_tls *tls, int why, struct belay_error *err)
{
    long verdict = SSL_get_verify_result(tls->ssl);

    if (why != SSL_ERROR_SSL)
        return err_set(err, BELAY_UNAVAILABLE,
                       "valkey: the connection was lost during the TLS handshake");
    if (verdict != X509_V_OK) {
        ERR_clear_error();
        return err_reason(err, BELAY_UNAVAILABLE, "tls",
                          "valkey: TLS: the server's certificate: %s",
                          X509_verify_cert_error_string(verdict));
    }
    return refused("no agreement with the server", err);
}

static belay_rc shake_hands(struct vk_tls *tls, int64_t deadline_us,
                            struct belay_error *err)
{
    for (;;) {
        ERR_clear_error();
        int done = SSL_connect(tls->ssl);
        if (done == 1)
            return BELAY_OK;
        int why = SSL_get_error(tls->ssl, done);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return handshake_failed(tls, why, err);
        if (!vk_wait_fd(tls->fd, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT,
                        deadline_us))
            return err_set(err, BELAY_UNAVAILABLE,
                           "valkey: no answer to the TLS handshake in time");
    }
}

belay_rc vk_tls_open(const struct valkey_options *o, const char *host, int fd,
                     int64_t deadline_us, struct vk_tls **out, struct belay_error *err)
{
    struct vk_tls *tls = calloc(1, sizeof(*tls));

    if (!tls)
        return err_no_memory(err, "TLS");
    tls->fd = fd;
    belay_rc rc = make_ssl(tls, o, host, err);
    if (rc == BELAY_OK)
        rc = shake_hands(tls, deadline_us, err);
    if (rc) {
        vk_tls_close(tls);
        return rc;
    }
    *out = tls;
    return BELAY_OK;
}

void vk_tls_close(struct vk_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    BIO_meth_free(tls->method);
    SSL_CTX_free(tls->context);
    free(tls);
}

/* --- reading and writing --- */

static ssize_t result(struct vk_tls *tls, int done, size_t n, short *wants)
{
    if (done == 1)
        return (ssize_t)n;
    int why = SSL_get_error(tls->ssl, done);
    ERR_clear_error();
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        return -1;
    *wants = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return 0;
}

ssize_t vk_tls_read(struct vk_tls *tls, void *buf, size_t n, short *wants)
{
    size_t got = 0;

    ERR_clear_error();
    int done = SSL_read_ex(tls->ssl, buf, n, &got);
    return result(tls, done, got, wants);
}

/* What could not be written is offered again, from its beginning and no shorter. */
ssize_t vk_tls_write(struct vk_tls *tls, const struct iovec *iov, int n, short *wants)
{
    const uint8_t *bytes = iov[0].iov_base;
    size_t len = iov[0].iov_len, written = 0;

    if (len < RECORD_SIZE && n > 1) {
        len = 0;
        for (int i = 0; i < n && len < RECORD_SIZE; i++) {
            size_t part =
                iov[i].iov_len < RECORD_SIZE - len ? iov[i].iov_len : RECORD_SIZE - len;
            memcpy(tls->record + len, iov[i].iov_base, part);
            len += part;
        }
        bytes = tls->record;
    }
    ERR_clear_error();
    int done = SSL_write_ex(tls->ssl, bytes, len, &written);
    return result(tls, done, written, wants);
}
