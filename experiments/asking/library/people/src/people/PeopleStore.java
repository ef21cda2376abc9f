package people;

import java.io.IOException;

/** Where people are kept, as JSON texts by name. Every method may be called by many threads at once. */
interface PeopleStore {
    /** The store that `-Dpeople.memcached=HOST:PORT` names, else one in memory. */
    static PeopleStore open() throws IOException {
        String address = System.getProperty("people.memcached", "");
        return address.isEmpty() ? new MemoryPeople() : new MemcachedPeople(address);
    }

    /** The person, or null. */
    String get(String name) throws IOException;

    /** Stores the person; whether there was none of that name. */
    boolean put(String name, String person) throws IOException;

    /** Stores the person where there is one of that name; whether there was. */
    boolean replace(String name, String person) throws IOException;

    void remove(String name) throws IOException;
}
