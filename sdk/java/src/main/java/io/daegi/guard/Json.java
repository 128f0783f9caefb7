package io.daegi.guard;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;

final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    static String text(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JacksonException error) {
            throw new IllegalStateException(error);
        }
    }

    static JsonNode read(byte[] text) throws IOException {
        return MAPPER.readTree(text);
    }
}
