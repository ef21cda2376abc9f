/* A resolver that fails for a while: LD_PRELOAD this; while the file NAMES_SHIM_FILE exists, no name is resolved.
 *
 * The answer is that of a resolver whose servers do not answer; the file grows by a byte with each. Addresses in digits
 * are no names.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*resolver)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int is_name(const char *node) {
    unsigned char address[sizeof(struct in6_addr)];
    return node && inet_pton(AF_INET, node, address) != 1 && inet_pton(AF_INET6, node, address) != 1;
}

int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict found) {
    const char *path = getenv("NAMES_SHIM_FILE");
    resolver real = (resolver)dlsym(RTLD_NEXT, "getaddrinfo");
    int failing = path && is_name(node) ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (failing >= 0) {
        ssize_t noted = write(failing, node, 1);
        close(failing);
        return noted < 0 ? EAI_FAIL : EAI_AGAIN;
    }
    return real(node, service, hints, found);
}
