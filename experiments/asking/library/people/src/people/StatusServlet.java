package people;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;

/**
 * Answers OK, after `?wait_ms=` of waiting when that is given: on the server's own thread, or, with the JVM option
 * -Dpeople.threads=virtual, on a virtual thread for each request.
 */
@WebServlet(urlPatterns = "/status", asyncSupported = true)
public final class StatusServlet extends HttpServlet {
    private static final int MAX_WAIT_MS = 10_000;

    private transient Executor virtualThreads;

    @Override
    public void init() throws ServletException {
        String threads = System.getProperty("people.threads", "pool");
        if (threads.equals("virtual")) {
            virtualThreads = newVirtualThreads();
        } else if (!threads.equals("pool")) {
            throw new ServletException("people.threads is pool or virtual, not " + threads);
        }
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        long waitMs = waitMs(request);
        if (virtualThreads == null) {
            answer(response, waitMs);
            return;
        }
        AsyncContext context = request.startAsync(request, response);
        virtualThreads.execute(() -> {
            try {
                answer(response, waitMs);
            } catch (IOException gone) {
                // The client has left: there is nobody to tell.
            } finally {
                context.complete();
            }
        });
    }

    private static void answer(HttpServletResponse response, long waitMs) throws IOException {
        if (waitMs > 0) {
            try {
                Thread.sleep(waitMs);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
        response.setContentType("text/plain");
        response.getWriter().write("OK");
    }

    private static long waitMs(HttpServletRequest request) {
        String asked = request.getParameter("wait_ms");
        return asked == null ? 0 : Math.max(0, Math.min(MAX_WAIT_MS, Long.parseLong(asked)));
    }

    /** By name, because the application is compiled for Java 17 and virtual threads came with Java 21. */
    private static Executor newVirtualThreads() throws ServletException {
        try {
            return (Executor) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        } catch (ReflectiveOperationException absent) {
            throw new ServletException("people.threads=virtual needs Java 21 or later", absent);
        }
    }
}
