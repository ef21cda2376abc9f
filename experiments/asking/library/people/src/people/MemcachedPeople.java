package people;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;

/** People in a memcached, spoken to in its text protocol over connections that are kept and used by one thread at a time. */
final class MemcachedPeople implements PeopleStore {
    private static final int TIMEOUT_MS = 5_000;
    private static final int MAX_KEY_BYTES = 250;
    private static final int MAX_LINE_BYTES = 1024;

    private final InetSocketAddress address;
    private final Deque<Connection> idle = new ConcurrentLinkedDeque<>();

    MemcachedPeople(String address) throws IOException {
        int colon = address.lastIndexOf(':');
        if (colon < 1) {
            throw new IOException("people.memcached is HOST:PORT, not " + address);
        }
        int port = Integer.parseInt(address.substring(colon + 1));
        this.address = new InetSocketAddress(address.substring(0, colon), port);
        get("tomcat"); // a memcached that is not there is told now, not at the first request
    }

    @Override
    public String get(String name) throws IOException {
        return ask("get " + key(name) + "\r\n", null, true);
    }

    @Override
    public boolean put(String name, String person) throws IOException {
        return store("add", name, person) || !store("set", name, person);
    }

    @Override
    public boolean replace(String name, String person) throws IOException {
        return store("replace", name, person);
    }

    @Override
    public void remove(String name) throws IOException {
        ask("delete " + key(name) + "\r\n", null, false);
    }

    private boolean store(String verb, String name, String person) throws IOException {
        byte[] data = person.getBytes(StandardCharsets.UTF_8);
        return ask(verb + " " + key(name) + " 0 0 " + data.length + "\r\n", data, false).equals("STORED");
    }

    private static String key(String name) throws IOException {
        String key = "people." + URLEncoder.encode(name, StandardCharsets.UTF_8);
        if (key.length() > MAX_KEY_BYTES) {
            throw new IOException("a name has at most " + MAX_KEY_BYTES + " bytes");
        }
        return key;
    }

    /** The answer's line, or the value that was asked for (null = none); a connection that fails is not used again. */
    private String ask(String command, byte[] data, boolean wantsValue) throws IOException {
        Connection connection = idle.pollFirst();
        if (connection == null) {
            connection = new Connection(address);
        }
        try {
            connection.send(command, data);
            String answer = wantsValue ? connection.value() : connection.line();
            idle.addFirst(connection);
            return answer;
        } catch (IOException failed) {
            connection.socket.close();
            throw failed;
        }
    }

    private static final class Connection {
        private final Socket socket = new Socket();
        private final InputStream in;
        private final OutputStream out;

        Connection(InetSocketAddress address) throws IOException {
            try {
                socket.setTcpNoDelay(true);
                socket.setSoTimeout(TIMEOUT_MS);
                socket.connect(address, TIMEOUT_MS);
                in = new BufferedInputStream(socket.getInputStream());
                out = new BufferedOutputStream(socket.getOutputStream());
            } catch (IOException failed) {
                socket.close();
                throw new IOException("no memcached answers at " + address, failed);
            }
        }

        void send(String command, byte[] data) throws IOException {
            out.write(command.getBytes(StandardCharsets.US_ASCII));
            if (data != null) {
                out.write(data);
                out.write('\r');
                out.write('\n');
            }
            out.flush();
        }

        String line() throws IOException {
            StringBuilder text = new StringBuilder();
            for (int read; (read = in.read()) != '\n'; ) {
                if (read < 0 || text.length() > MAX_LINE_BYTES) {
                    throw new EOFException("memcached ended its answer early");
                }
                if (read != '\r') {
                    text.append((char) read);
                }
            }
            String line = text.toString();
            if (line.startsWith("ERROR") || line.startsWith("CLIENT_ERROR") || line.startsWith("SERVER_ERROR")) {
                throw new IOException("memcached says " + line);
            }
            return line;
        }

        String value() throws IOException {
            String head = line();
            if (head.equals("END")) {
                return null;
            }
            byte[] data = in.readNBytes(Integer.parseInt(head.substring(head.lastIndexOf(' ') + 1)));
            line();
            if (!line().equals("END")) {
                throw new IOException("memcached answered something else than one value");
            }
            return new String(data, StandardCharsets.UTF_8);
        }
    }
}
