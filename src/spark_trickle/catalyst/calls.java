import java.util.ArrayList;
import java.util.List;
import py4j.Gateway;
import py4j.Py4JException;
import py4j.ReturnObject;

/** Carries out several calls of Python in one: each may use what those before it gave. */
public class Calls {
    private final Gateway gateway;

    public Calls(Gateway gateway) {
        this.gateway = gateway;
    }

    /**
     * The first line lists objects that Python no longer needs. Every other one is a call: its target, the name of the
     * method (none: a constructor), and its arguments. The answer has the objects that they gave, in the same order, and
     * then what the last one gave in the form that Python expects of any call.
     */
    public String run(String text) throws Throwable {
        String[] lines = text.split("\u0002", -1);
        String[] gone = lines[0].split("\u0001");
        for (int i = 0; i < gone.length; i++) {
            gateway.deleteObject(gone[i]);
        }
        String[] ids = new String[lines.length];
        try {
            return answers(lines, ids);
        } catch (Throwable error) {
            for (int i = 1; i < ids.length; i++) {
                if (ids[i] != null) {
                    gateway.deleteObject(ids[i]);
                }
            }
            throw error;
        }
    }

    private String answers(String[] lines, String[] ids) throws Throwable {
        Object[] values = new Object[lines.length];
        StringBuilder found = new StringBuilder();
        String last = "";
        for (int i = 1; i < lines.length; i++) {
            String[] words = lines[i].split("\u0001", -1);
            List arguments = new ArrayList();
            for (int j = 2; j < words.length; j++) {
                arguments.add(value(words[j], values));
            }
            ReturnObject given = call(words[0], words[1], arguments, ids);
            ids[i] = given.getName();
            values[i] = ids[i] != null ? gateway.getObject(ids[i]) : given.getPrimitiveObject();
            found.append(i > 1 ? "\u0001" : "").append(ids[i] != null ? ids[i] : "");
            last = given.getCommandPart();
        }
        return found.append('\u0002').append(last).toString();
    }

    private ReturnObject call(String target, String method, List arguments, String[] ids) throws Throwable {
        try {
            if (method.isEmpty()) {
                return checked(gateway.invoke(target, arguments));
            }
            String object = target.charAt(0) == '#' ? ids[Integer.parseInt(target.substring(1))] : target;
            return checked(gateway.invoke(method, object, arguments));
        } catch (Py4JException error) {
            throw error.getCause() != null ? error.getCause() : error;
        }
    }

    /** An error of a method is an answer too: it is thrown again, so that Python sees it as that of any call. */
    private ReturnObject checked(ReturnObject given) throws Throwable {
        if (!given.isError()) {
            return given;
        }
        Object error = given.getName() == null ? null : gateway.getObject(given.getName());
        if (error != null) {
            gateway.deleteObject(given.getName());
        }
        throw error instanceof Throwable ? (Throwable) error : new Py4JException(given.getCommandPart());
    }

    private Object value(String word, Object[] values) {
        String rest = word.substring(1);
        switch (word.charAt(0)) {
            case '#': return values[Integer.parseInt(rest)];
            case 'r': return gateway.getObject(rest);
            case 's': return rest;
            case 'i': return Integer.valueOf(rest);
            case 'b': return Boolean.valueOf(rest);
            default: return null;
        }
    }
}
