package people;

import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** People in the memory of the server. */
final class MemoryPeople implements PeopleStore {
    private static final int MAX_PEOPLE = 100_000;

    private final ConcurrentMap<String, String> people = new ConcurrentHashMap<>();

    @Override
    public String get(String name) {
        return people.get(name);
    }

    @Override
    public boolean put(String name, String person) throws IOException {
        if (people.size() >= MAX_PEOPLE) {
            throw new IOException("there is no room for more than " + MAX_PEOPLE + " people");
        }
        return people.put(name, person) == null;
    }

    @Override
    public boolean replace(String name, String person) {
        return people.replace(name, person) != null;
    }

    @Override
    public void remove(String name) {
        people.remove(name);
    }
}
