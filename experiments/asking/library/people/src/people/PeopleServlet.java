package people;

import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** People as JSON texts by name: PUT stores one, GET answers it, POST replaces it, DELETE removes it. */
@WebServlet("/people/*")
public final class PeopleServlet extends HttpServlet {
    private static final int MAX_PERSON_CHARS = 8192;

    private transient PeopleStore people;

    @Override
    public void init() {
        people = (PeopleStore) getServletContext().getAttribute(People.STORE);
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String person = people.get(name(request));
        if (person == null) {
            response.sendError(HttpServletResponse.SC_NOT_FOUND);
            return;
        }
        answer(response, HttpServletResponse.SC_OK, person);
    }

    @Override
    protected void doPut(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String person = body(request);
        boolean isNew = people.put(name(request), person);
        answer(response, isNew ? HttpServletResponse.SC_CREATED : HttpServletResponse.SC_OK, person);
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String person = body(request);
        if (!people.replace(name(request), person)) {
            response.sendError(HttpServletResponse.SC_NOT_FOUND);
            return;
        }
        answer(response, HttpServletResponse.SC_OK, person);
    }

    @Override
    protected void doDelete(HttpServletRequest request, HttpServletResponse response) throws IOException {
        people.remove(name(request));
        response.setStatus(HttpServletResponse.SC_NO_CONTENT);
    }

    private static String name(HttpServletRequest request) {
        String path = request.getPathInfo();
        return path == null ? "" : path.substring(1);
    }

    private static String body(HttpServletRequest request) throws IOException {
        StringBuilder text = new StringBuilder();
        char[] part = new char[1024];
        for (int read; (read = request.getReader().read(part)) > 0; ) {
            text.append(part, 0, read);
            if (text.length() > MAX_PERSON_CHARS) {
                throw new IOException("a person has at most " + MAX_PERSON_CHARS + " characters");
            }
        }
        return text.toString();
    }

    private static void answer(HttpServletResponse response, int status, String person) throws IOException {
        response.setStatus(status);
        response.setContentType("application/json");
        response.setCharacterEncoding("UTF-8");
        response.getWriter().write(person);
    }
}
