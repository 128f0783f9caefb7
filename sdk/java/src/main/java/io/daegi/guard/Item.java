package io.daegi.guard;

import java.util.regex.Pattern;

/** What can be the id of an item. */
public final class Item {
    static final Pattern PATTERN = Pattern.compile("[A-Za-z0-9._~-]{1,64}");

    private Item() {}

    /** Whether this text can be one. */
    public static boolean isId(String text) {
        return text != null && PATTERN.matcher(text).matches();
    }
}
