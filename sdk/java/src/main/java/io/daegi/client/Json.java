package io.daegi.client;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.deser.std.StdDeserializer;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;

/** JSON of the contract. Unknown fields and values of a newer server are ignored. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper()
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.READ_UNKNOWN_ENUM_VALUES_USING_DEFAULT_VALUE)
            .registerModule(new SimpleModule().addDeserializer(Instant.class, new InstantReader()));

    private Json() {}

    static String text(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JacksonException error) {
            throw new IllegalStateException(error);
        }
    }

    static <T> T read(String text, Class<T> type) {
        try {
            T value = MAPPER.readValue(text, type);
            if (value == null) {
                throw new IOException("the response is null");
            }
            return value;
        } catch (IOException error) {
            // A proxy may have sent anything else: the waiting room was not reached.
            throw new UncheckedIOException("the response is not a " + type.getSimpleName(), error);
        }
    }

    /** Returns the JSON of a text, or a missing node if it is none. */
    static JsonNode tree(String text) {
        try {
            return MAPPER.readTree(text);
        } catch (JacksonException notJson) {
            return MissingNode.getInstance();
        }
    }

    /** Returns a time, or null if there is none. */
    static Instant instant(JsonNode node) {
        try {
            return node.isTextual() ? OffsetDateTime.parse(node.textValue()).toInstant() : null;
        } catch (DateTimeParseException malformed) {
            return null;
        }
    }

    /** Reads RFC 3339 times, so that Jackson's module for java.time is not needed. */
    private static final class InstantReader extends StdDeserializer<Instant> {
        private static final long serialVersionUID = 1;

        InstantReader() {
            super(Instant.class);
        }

        @Override
        public Instant deserialize(JsonParser parser, DeserializationContext context) throws IOException {
            return instant(parser.readValueAsTree());
        }
    }
}
