package io.daegi.guard;

import io.daegi.guard.servlet.RequestGuard;
import io.daegi.guard.servlet.GuardFilter;
import io.daegi.guard.spring.GuardConfigurer;
import io.daegi.guard.spring.RequiresEntry;
import jakarta.servlet.http.HttpServletRequest;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** A Spring Boot shop behind a waiting room, as a user of the guard would write it. */
@SpringBootApplication
public class ShopApp {
    @Bean
    Guard guard(@Value("${daegi.public-url}") String publicUrl, @Value("${daegi.internal-url}") String internalUrl) {
        return Guard.builder(publicUrl).internalUrl(internalUrl).build();
    }

    @Bean
    GuardConfigurer guardConfigurer(Guard guard) {
        return new GuardConfigurer(guard);
    }

    /** The filter, for services without Spring MVC; this one also checks online. */
    @Bean
    FilterRegistrationBean<GuardFilter> strict(
            @Value("${daegi.public-url}") String publicUrl, @Value("${daegi.internal-url}") String internalUrl) {
        Guard online = Guard.builder(publicUrl).internalUrl(internalUrl).online(true).build();
        var filter = new FilterRegistrationBean<>(new GuardFilter(online, "concert"));
        filter.addUrlPatterns("/strict/*");
        return filter;
    }

    /** A filter that completes entries. */
    @Bean
    FilterRegistrationBean<GuardFilter> completing(Guard guard) {
        var filter = new FilterRegistrationBean<>(new GuardFilter(guard, "concert").completeOnSuccess());
        filter.setName("completing");
        filter.addUrlPatterns("/pay/*");
        return filter;
    }

    /** What the shop sells. */
    @RestController
    public static class Shop {
        @GetMapping("/checkout")
        @RequiresEntry("concert")
        String checkout(Entry entry) {
            return "hello " + entry.userId();
        }

        @GetMapping("/items/{itemId}")
        @RequiresEntry("{itemId}")
        String item(@PathVariable String itemId, Entry entry) {
            return "hello " + entry.userId() + ", " + itemId;
        }

        @PostMapping("/orders/{status}")
        @RequiresEntry(value = "concert", completeOnSuccess = true)
        ResponseEntity<String> order(@PathVariable int status, Entry entry) {
            return ResponseEntity.status(status).body("ordered by " + entry.userId());
        }

        @GetMapping("/strict/page")
        String strict(HttpServletRequest request) {
            return "hello " + RequestGuard.entryOf(request).userId();
        }

        @PostMapping("/pay/now")
        String pay() {
            return "paid";
        }

        @GetMapping("/open")
        String open() {
            return "open to all";
        }
    }
}
