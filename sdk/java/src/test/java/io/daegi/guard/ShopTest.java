package io.daegi.guard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.daegi.DaegiProcess;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;

/** A Spring Boot shop behind a real daegi, over HTTP. */
class ShopTest {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static DaegiProcess daegi;
    private static ConfigurableApplicationContext app;
    private static String shop;

    @BeforeAll
    static void open() throws Exception {
        daegi = new DaegiProcess();
        SpringApplication application = new SpringApplication(ShopApp.class);
        application.setDefaultProperties(Map.of(
                "server.port", "0", "server.address", "127.0.0.1", "daegi.public-url", daegi.publicUrl, "daegi.internal-url",
                daegi.internalUrl, "spring.main.banner-mode", "off", "logging.level.root", "warn"));
        app = application.run();
        shop = "http://127.0.0.1:"
                + ((ServletWebServerApplicationContext) app).getWebServer().getPort();
    }

    @AfterAll
    static void close() throws InterruptedException {
        if (app != null) {
            app.close();
        }
        if (daegi != null) {
            daegi.close();
        }
    }

    private static HttpResponse<String> send(String method, String path, String... headers)
            throws IOException, InterruptedException {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create(shop + path)).method(method, HttpRequest.BodyPublishers.noBody());
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HTTP.send(request.build(), BodyHandlers.ofString());
    }

    @Test
    void browsersWithoutAPassAreRedirectedAndOtherClientsGetAProblem() throws Exception {
        for (String path : List.of("/checkout", "/strict/page")) {
            HttpResponse<String> browser = send("GET", path, "accept", "text/html");
            assertEquals(303, browser.statusCode());
            String page = browser.headers().firstValue("location").orElseThrow();
            assertEquals(daegi.publicUrl + "/wait/concert", page);
            assertEquals(200, DaegiProcess.get(page).statusCode(), "the page is there");
            HttpResponse<String> client = send("GET", path, "accept", "application/json");
            assertEquals(401, client.statusCode());
            assertTrue(client.body().contains("\"PASS_MISSING\""), client.body());
        }
        assertEquals(200, send("GET", "/open").statusCode(), "not everything is protected");
    }

    @Test
    void anAdmittedUserPassesAndTheBrowserStoresThePass() throws Exception {
        String pass = daegi.admit("kim").pass();
        HttpResponse<String> first = send("GET", "/checkout?pass=" + pass);
        assertEquals("hello kim", first.body());
        String cookie = first.headers().firstValue("set-cookie").orElseThrow();
        assertTrue(cookie.matches("daegi-pass-concert=\\S+; Path=/; Max-Age=\\d+; HttpOnly; SameSite=Lax"), cookie);
        HttpResponse<String> second = send("GET", "/checkout", "cookie", cookie.split(";")[0]);
        assertEquals("hello kim", second.body());
        assertTrue(second.headers().firstValue("set-cookie").isEmpty());
    }

    @Test
    void theItemMayBePartOfThePath() throws Exception {
        String pass = daegi.admit("cho").pass();
        assertEquals("hello cho, concert", send("GET", "/items/concert", "daegi-pass", pass).body());
        assertEquals(403, send("GET", "/items/drop", "daegi-pass", pass).statusCode());
        assertEquals(404, send("GET", "/items/a$b", "daegi-pass", pass).statusCode());
    }

    @Test
    void aSuccessfulOrderCompletesTheEntryAndThePassIsRevoked() throws Exception {
        DaegiProcess.AdmittedUser user = daegi.admit("lee");
        String[] pass = {"authorization", "Bearer " + user.pass()};
        assertEquals(402, send("POST", "/orders/402", pass).statusCode());
        assertEquals("hello lee", send("GET", "/strict/page", pass).body(), "a failed order ends nothing");
        assertEquals(201, send("POST", "/orders/201", pass).statusCode());
        user.awaitCompleted();
        HttpResponse<String> refused = send("GET", "/strict/page", pass);
        assertEquals(403, refused.statusCode());
        assertTrue(refused.body().contains("\"PASS_REVOKED\""), refused.body());
        assertEquals(200, send("GET", "/checkout", pass).statusCode(), "offline, a pass is good until it expires");
    }

    @Test
    void theFilterCompletesToo() throws Exception {
        DaegiProcess.AdmittedUser user = daegi.admit("park");
        assertEquals("paid", send("POST", "/pay/now", "daegi-pass", user.pass()).body());
        user.awaitCompleted();
    }
}
