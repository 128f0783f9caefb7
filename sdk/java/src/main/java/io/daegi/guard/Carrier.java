package io.daegi.guard;

import java.util.Arrays;
import java.util.function.UnaryOperator;

/**
 * Where in a request the pass is, and how a browser keeps it.
 *
 * <p>In this order: the header {@code daegi-pass}, the parameter {@code pass} of the address (an item's {@code entryUrl}
 * brings people so), the cookie that the guard made of it, {@code Authorization: Bearer}. The last one is last because a
 * service may use it for something else. Where both address and cookie carry one, {@link Guard#admit} decides.
 *
 * @param address the pass in the address, or an empty text
 * @param kept the pass that the request brings without it, or an empty text
 */
public record Carrier(String address, String kept) {
    private static final String PARAMETER = "pass=";

    /** The passes that a request brings for this item. A request without query or header has null there. */
    public static Carrier find(String query, UnaryOperator<String> header, String item) {
        String own = text(header.apply("daegi-pass"));
        if (!own.isEmpty()) {
            return new Carrier("", own);
        }
        String address = after(PARAMETER, text(query).split("&"));
        String kept = after(name(item) + "=", text(header.apply("cookie")).split(";"));
        boolean none = address.isEmpty() && kept.isEmpty();
        return new Carrier(address, none ? bearer(text(header.apply("authorization"))) : kept);
    }

    /** The first pass of the request, or an empty text. */
    public String pass() {
        return address.isEmpty() ? kept : address;
    }

    /** Keeps a pass in the browser for as long as it is good, away from scripts and other sites. */
    static String cookie(String item, String pass, long seconds, boolean https) {
        String rules = "; Path=/; Max-Age=" + seconds + "; HttpOnly; SameSite=Lax" + (https ? "; Secure" : "");
        return name(item) + "=" + pass + rules;
    }

    /** One for each item, since a person may be inside several. */
    private static String name(String item) {
        return "daegi-pass-" + item;
    }

    private static String text(String value) {
        return value == null ? "" : value;
    }

    /** A pass is made of characters that need no escaping. */
    private static String after(String start, String[] pairs) {
        var found = Arrays.stream(pairs).map(String::trim).filter(pair -> pair.startsWith(start)).findFirst();
        return found.map(pair -> pair.substring(start.length())).orElse("");
    }

    private static String bearer(String header) {
        String[] words = header.trim().split(" +");
        return words.length == 2 && words[0].equalsIgnoreCase("bearer") ? words[1] : "";
    }
}
