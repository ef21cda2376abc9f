package people;

import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.servlet.annotation.WebListener;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * Opens the store when the application starts: without it the application does not start, so no load meets it.
 *
 * <p>The person `tomcat` is there from the start, so that a load of one method alone meets no error.
 */
@WebListener
public final class People implements ServletContextListener {
    static final String STORE = "people.store";

    @Override
    public void contextInitialized(ServletContextEvent event) {
        try {
            PeopleStore store = PeopleStore.open();
            store.put("tomcat", "{\"name\":\"tomcat\"}");
            event.getServletContext().setAttribute(STORE, store);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}
